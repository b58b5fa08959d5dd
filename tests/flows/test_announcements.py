"""Status moves are announced to listeners, if a subscription asks for it: staged with the move itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from penstock.errors import InvalidInput
from penstock.messaging import envelope
from penstock.messaging.envelope import Envelope
from penstock.store.outbox.announcements import announce, announced
from penstock_executor.loops import announce_moves as loop
from tests.flows import shop
from tests.flows.installation import Installation
from tests.penstock.messaging.transports.broker import plain_pika

Heard = list[Envelope]


@asynccontextmanager
async def listening(
    database: str, broker: str | None
) -> AsyncIterator[tuple[Heard, Callable[[], Awaitable[None]]]]:
    """Listen without any code of Penstock but the decoder. Yields the announcements, and a function that lets more arrive."""
    heard: Heard = []
    if broker is None:
        connection = await asyncpg.connect(database)
        await connection.add_listener(
            "penstock.status", lambda *args: heard.append(envelope.decode(str(args[-1]).encode()))
        )
        yield heard, lambda: asyncio.sleep(0.05)
        await connection.close()
        return
    with plain_pika(broker) as channel:
        mine = channel.queue_declare("", exclusive=True).method.queue
        channel.queue_bind(mine, "penstock.status", "execution.status.*")

        async def more() -> None:
            await asyncio.sleep(0.05)
            while (letter := channel.basic_get(mine, auto_ack=True))[0] is not None:
                assert letter[1].type == envelope.decode(letter[2]).type
                heard.append(envelope.decode(letter[2]))

        yield heard, more


def ids(heard: Heard, status: str) -> list[Any]:
    return sorted(
        id for envelope in heard if envelope.type == f"execution.status.{status}" for id in envelope.ids
    )


async def test_a_listener_hears_of_each_requested_move(
    house: Installation, database: str, broker: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "RECHECK", 0.1)
    await house.start(shop.charge, shop.hopeless)
    await house.client.run("shop.charge", {"order": 1}, timeout=20)
    await house.quiet()
    async with listening(database, broker) as (heard, receive):
        assert await announce(house.session, ["failed", "completed"]) == ["completed", "failed"]
        good = await house.client.start_many("shop.charge", [{"order": n} for n in range(600)])
        bad = await house.client.start("shop.hopeless")
        async with asyncio.timeout(30):
            while len(set(ids(heard, "completed"))) < 600 or not ids(heard, "failed"):
                await receive()
        assert sorted(set(ids(heard, "completed"))) == sorted(good)
        assert set(ids(heard, "failed")) == {bad}
        assert {envelope.type.rsplit(".", 1)[1] for envelope in heard} == {"completed", "failed"}
        await announce(house.session, [])
        await house.client.run("shop.charge", {"order": 1}, timeout=20)
        await house.quiet()
        await receive()
        assert len(set(ids(heard, "completed"))) == 600
    await house.sound()


@pytest.mark.parametrize("transport", ["postgres"], indirect=True)
async def test_an_announcement_is_staged_with_its_move_or_not_at_all(house: Installation) -> None:
    await house.apply(shop.charge)
    await announce(house.session, ["requested", "cancelled"])
    staged = "select queue, ids from outbox where queue like 'execution.status.%' order by id"
    id = await house.client.start("shop.charge", {"order": 1})
    session = (await house.parts()).database.session()
    async with session.transaction() as tx:
        await tx.fetch("select * from cancel_executions(array[$1::uuid], 'asked')", id)
        assert [tuple(row) for row in await house.rows(staged)] == [("execution.status.requested", [id])]
    assert [row["queue"] for row in await house.rows(staged)] == [
        "execution.status.requested",
        "execution.status.cancelled",
    ]


@pytest.mark.parametrize("transport", ["postgres"], indirect=True)
async def test_only_statuses_there_are_can_be_announced(house: Installation) -> None:
    with pytest.raises(InvalidInput, match="finished"):
        await announce(house.session, ["completed", "finished"])
    assert await announced(house.session) == []
