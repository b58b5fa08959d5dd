"""A message without a queue on the broker is tried again later and later, and is kept in the end."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from penstock import Limit
from penstock.client import dead_letters
from penstock.errors import ConnectionFailed
from penstock.messaging.relay import RETURNS, relay
from penstock.store.outbox import outbox, queues
from penstock.store.outbox.dead_letters import LetterFilter
from penstock.store.session.database import Session
from tests.flows import shop
from tests.flows.installation import Installation
from tests.flows.letters import letter, scheduled


async def test_a_message_without_a_queue_is_kept_in_the_end(house: Installation) -> None:
    await house.apply(*shop.ALL)
    parts = await house.parts()
    await house.rows(
        "insert into outbox (queue, ids, due_at, tries) "
        "values ('nobody.knows', array[gen_random_uuid()], clock_timestamp() - interval '2 minutes', $1) returning 1",
        RETURNS - 2,
    )
    session = parts.database.session()
    if parts.transport.name == "rabbitmq":
        assert await relay(parts.transport, session, 0.0) == 0
        [row] = await house.rows("select tries, error, due_at > clock_timestamp() as later from outbox")
        assert (row["tries"], row["later"]) == (RETURNS - 1, True)
        await house.rows("update outbox set due_at = clock_timestamp() returning 1")
    assert await relay(parts.transport, session, 0.0) == 1
    found = await letter(house, "unroutable")
    assert (found["queue"], found["type"]) == ("nobody.knows", "nobody.knows")
    assert not await house.rows("select 1 from outbox")


async def test_an_announcement_without_a_listener_does_not_stay(house: Installation) -> None:
    """The process that staged it died. It is work of no other process, and soon gone, even where the outbox is the queue."""
    await house.rows(
        "insert into outbox (queue, ids, due_at) select q, array[gen_random_uuid()], clock_timestamp() "
        "from unnest(array['inquiry.created', 'execution.status.failed', 'nobody.knows']) q returning 1"
    )
    parts = await house.parts()
    for only in (None, [queues.STATUS_MOVED]):
        await relay(parts.transport, parts.database.session(), 0.0, only=only)
    assert [row["queue"] for row in await house.rows("select queue from outbox")] == ["nobody.knows"]
    assert not await house.rows("select 1 from dead_letter")


async def test_an_unroutable_message_is_replayed(database: str, vhost: str) -> None:
    async with Installation(database, vhost) as house:
        await house.apply(*shop.ALL, Limit(1, ref="shop.one", scope="shop"))
        ids = await house.client.start_many("shop.charge", [{"order": 7}] * 11)  # an executor has to be asked
        parts = await house.parts()
        await house.client.flush()  # no service has declared the queue: it comes back
        await house.rows("update outbox set tries = $1, due_at = clock_timestamp() returning 1", RETURNS - 1)
        assert await relay(parts.transport, parts.database.session(), 0.0) == 1
        row = await letter(house, "unroutable")
        await house.executor()
        await house.worker(*shop.ALL)
        [done] = [replayed async for replayed in dead_letters.replay(house.client, LetterFilter([row["id"]]))]
        assert "execution.requested" in str(done.said)
        for id in ids:
            assert await house.client.result(id, timeout=20) == {"order": 7, "charged": 0}
        await house.sound()


async def test_work_without_a_worker_is_never_a_dead_letter(database: str, vhost: str) -> None:
    async with Installation(database, vhost) as house:
        await house.apply(*shop.ALL)
        await house.executor()
        id = await scheduled(house)
        await house.rows("update outbox set tries = 50, due_at = clock_timestamp() returning 1")
        await house.until("select 1 from outbox where tries > 50 and queue = 'work.default'")
        assert not await house.rows("select 1 from dead_letter")
        await house.until("select 1 from outbox where due_at > clock_timestamp() + interval '60 seconds'")
        await house.worker(*shop.ALL)
        assert await house.client.result(id, timeout=20) == {"order": 7, "charged": 0}


async def test_nothing_is_held_against_a_message_while_there_is_no_broker(house: Installation) -> None:
    if (await house.parts()).transport.name == "postgres":
        return  # there the outbox is the queue
    await house.apply(*shop.ALL)
    parts = await house.parts()
    await parts.transport.close()
    await house.rows(
        "insert into outbox (queue, ids, due_at) "
        "values ('execution.requested', array[gen_random_uuid()], clock_timestamp() - interval '1 hour') returning 1"
    )
    assert await relay(parts.transport, parts.database.session(), 0.0) == 0
    [row] = await house.rows("select tries, due_at <= clock_timestamp() as due from outbox")
    assert (row["tries"], row["due"]) == (0, True)


async def test_rows_of_a_relay_are_free_once_the_database_is_back(
    house: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broker and database went at the same moment."""
    if (await house.parts()).transport.name == "postgres":
        return  # there the outbox is the queue
    parts, outages, release = await house.parts(), [ConnectionFailed("gone")] * 2, outbox.release
    await parts.transport.close()
    await house.rows(
        "insert into outbox (queue, ids, due_at) "
        "values ('execution.requested', array[gen_random_uuid()], clock_timestamp() - interval '1 hour') returning 1"
    )

    async def released(session: Session, ids: Sequence[int]) -> None:
        if outages:
            raise outages.pop()
        await release(session, ids)

    monkeypatch.setattr(outbox, "release", released)
    assert await relay(parts.transport, parts.database.session(), 0.0) == 0
    assert await house.rows("select 1 from outbox where due_at <= clock_timestamp()")
