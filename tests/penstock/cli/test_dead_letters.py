"""`penstock dead-letters`: see why, put back, drop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pika
import pytest

from penstock import Trigger
from penstock.ids import new_id
from penstock.messaging import envelope
from penstock.messaging.transports import Message
from penstock.store import queues
from tests.flows import shop
from tests.flows.installation import QUICK, Installation
from tests.penstock.cli.commands import penstock


@pytest.fixture
async def cluster(database: str, vhost: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Installation]:
    """An installation on RabbitMQ, where events come from outside."""
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", database)
    monkeypatch.setenv("PENSTOCK_BROKER_URL", vhost)
    monkeypatch.setenv("PENSTOCK_DELIVERY_LIMIT", str(QUICK["delivery_limit"]))
    async with Installation(database, vhost) as installation:
        await installation.start(*shop.ALL)
        yield installation


async def publish(vhost: str, *given: tuple[str, bytes, dict[str, Any]]) -> None:
    def send() -> None:
        connection = pika.BlockingConnection(pika.URLParameters(vhost))
        for trigger, body, properties in given:
            connection.channel().basic_publish(
                "penstock.events", trigger, body, pika.BasicProperties(**properties)
            )
        connection.close()

    await asyncio.to_thread(send)


async def letters(house: Installation, count: int) -> list[dict[str, Any]]:
    await house.until(f"select 1 from dead_letter having count(*) = {count}")
    return (await penstock("dead-letters", "list", "--json")).documents


async def test_an_event_is_replayed_once_its_trigger_exists(cluster: Installation, vhost: str) -> None:
    await publish(vhost, ("shop.returned", b'{"id": 7}', {"message_id": "r-7", "app_id": "till"}))
    [letter] = await letters(cluster, 1)
    assert "shop.returned" in letter["reason"]
    early = await penstock("dead-letters", "replay", letter["id"])
    assert early.code == 1
    assert "penstock apply" in early.err
    await cluster.apply(Trigger("shop.returned"))
    done = await penstock("dead-letters", "replay", letter["id"])
    assert (done.code, "event" in done.out) == (0, True)
    [event] = await cluster.rows("select trigger, source from event")
    assert (event["trigger"], event["source"]) == ("shop.returned", "till")
    assert await letters(cluster, 0) == []
    # The producer sends it again: it is the same event.
    await publish(vhost, ("shop.returned", b'{"id": 7}', {"message_id": "r-7", "app_id": "till"}))
    await publish(vhost, ("shop.returned", b'{"id": 8}', {"message_id": "r-8", "app_id": "till"}))
    await cluster.until("select 1 from event having count(*) = 2")


async def test_two_events_with_the_same_body_are_two_dead_letters(cluster: Installation, vhost: str) -> None:
    await publish(
        vhost,
        ("shop.nothing", b"{}", {"message_id": "a"}),
        ("shop.nothing", b"{}", {"message_id": "b"}),
        ("shop.nothing", b"{}", {"message_id": "b"}),
        ("shop.never", b"{}", {"message_id": "a"}),
    )
    await cluster.until("select 1 from dead_letter having sum(count) = 4")
    assert sorted(letter["count"] for letter in await letters(cluster, 3)) == [1, 1, 2]


async def test_one_is_shown_with_its_body_and_dropped(cluster: Installation, vhost: str) -> None:
    await publish(vhost, ("shop.order_placed", b"{not json [x]", {"message_id": "m-2"}))
    [letter] = await letters(cluster, 1)
    id = letter["id"]
    assert "event.received" in (await penstock("dead-letters", "list")).out
    assert (await penstock("dead-letters", "list", "--queue", "work.default", "--json")).documents == []
    said = await penstock("dead-letters", "show", id)
    assert "{not json [x]" in said.out
    assert "m-2" in said.out
    assert (await penstock("dead-letters", "show", id, "--json")).document["body"] == "{not json [x]"
    again = await penstock("dead-letters", "replay", id)
    assert again.code == 1
    assert "not JSON" in again.err
    assert (await penstock("dead-letters", "drop", id, "--json")).document == {"dropped": [id]}
    assert "No dead letters" in (await penstock("dead-letters", "list")).out


async def test_an_envelope_of_ours_is_sent_again(house: Installation) -> None:
    await house.apply(*shop.ALL)
    id = await house.client.start("shop.charge", {"order": 7})
    await house.rows("delete from outbox")
    letter = await bury(house, queues.EXECUTION_REQUESTED, envelope.encode("execution.requested", [id]))
    assert (await penstock("dead-letters", "replay", letter)).code == 0
    await house.executor()
    await house.worker(*shop.ALL)
    assert await house.client.result(id, timeout=20) == {"order": 7, "charged": 0}


async def test_work_that_has_ended_is_not_sent_again(house: Installation) -> None:
    await house.apply(*shop.ALL)
    id = await house.client.start("shop.charge", {"order": 7})
    await house.client.cancel(id)
    letter = await bury(house, "work.default", envelope.encode("work", [id]))
    said = await penstock("dead-letters", "replay", letter)
    assert said.code == 1
    assert "has ended" in said.err
    assert len((await penstock("dead-letters", "list", "--json")).documents) == 1


async def test_garbage_is_not_sent_again(house: Installation) -> None:
    await house.start(*shop.ALL)
    await house.put(Message("execution.requested", b"\xff garbage", id="g", type="?"))
    [letter] = await letters(house, 1)
    said = await penstock("dead-letters", "replay", letter["id"])
    assert said.code == 1
    assert "drop it" in said.err


async def test_what_does_not_exist_says_so(named: str) -> None:
    for command in ("show", "replay", "drop"):
        said = await penstock("dead-letters", command, uuid4())
        assert said.code == 1, command
        assert "dead-letters list" in said.err, command


async def bury(house: Installation, queue: str, body: bytes) -> str:
    id = new_id()
    await house.rows(
        "insert into dead_letter (id, queue, reason, body, fingerprint) values ($1, $2, 'delivery_limit', $3, 'f')",
        id,
        queue,
        body,
    )
    return str(id)
