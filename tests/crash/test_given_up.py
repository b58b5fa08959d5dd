"""Work that no worker has any more, though no worker was lost, is found and done."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit, urlunsplit

from pydantic import SecretStr

from penstock import Limit, action, current
from penstock.language.terms.ids import new_id
from penstock.store.events import events
from penstock.store.session.database import is_transient
from tests.chaos.proxy import Proxy
from tests.flows import shop
from tests.flows.installation import Installation

running, ended = asyncio.Event(), asyncio.Event()


@action(pack="given_up")
async def first_hangs() -> int:
    if current().attempt == 1:
        running.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
    return current().attempt


async def test_work_given_up_in_an_unnoticed_silence_runs_again(database: str) -> None:
    running.clear()
    ended.clear()
    parts = urlsplit(database)
    async with Proxy(parts.port or 0) as link, Installation(database, None) as house:
        through = parts._replace(netloc=f"{parts.netloc.rpartition(':')[0]}:{link.port}")
        await house.apply(first_hangs)
        await house.executor(stale_threshold=600.0)
        await house.worker(first_hangs, database_url=SecretStr(urlunsplit(through)))
        id = await house.client.start("given_up.first_hangs")
        await running.wait()
        link.hold("up", "down")
        await ended.wait()
        link.heal()
        assert await house.client.result(id, timeout=30) == 2
        await house.until("select 1 where not exists (select from claim)")
        assert await house.rows("select from process where state = 'dead'") == []
        await house.sound()


async def test_an_event_whose_message_was_lost_meets_its_rules(house: Installation) -> None:
    await house.apply(*shop.ALL)
    event = new_id()
    async with house.session.transaction() as tx:
        payload = '{"id": 1, "amount": 500}'
        await events.store(
            tx, [events.NewEvent("shop.order_placed", "public", payload, "test", id=event)], matched=False
        )
        await tx.fetch("delete from outbox")
    await house.executor()
    await house.worker(*shop.ALL)
    await house.until(
        "select 1 from enforcement n join execution e on e.id = n.execution_id "
        "where n.event_id = $1 and e.status = 'completed'",
        event,
    )
    assert await house.rows("select from unmatched") == []
    await house.sound()


@action(pack="given_up", limits=Limit(1))
async def alone() -> None: ...


@action(pack="given_up")
async def brief() -> None: ...


async def test_a_lost_message_does_not_keep_a_limit_while_its_queue_is_long(database: str) -> None:
    async with Installation(database, None) as house:
        await house.apply(alone, brief)
        await house.session.fetch(
            "insert into process (id, kind, name, routes, actions, beat_at) "
            "values ($1, 'worker', 'busy', '{default}', '{given_up.alone}', 'infinity')",
            new_id(),
        )
        await house.executor()
        await house.client.start("given_up.brief")
        id = await house.client.start("given_up.alone")
        await house.until("select 1 from slot where execution_id = $1", id)
        await house.session.fetch("delete from outbox where $1 = any(ids)", id)
        await house.until("select 1 from outbox where $1 = any(ids)", id)
        assert len(await house.rows("select from outbox where queue = 'work.default'")) == 2


async def test_a_silent_client_in_a_transaction_loses_its_locks(database: str) -> None:
    async with Installation(database, None) as house:
        silent, other = (await house.parts()).database.session(), (await house.parts()).database.session()
        lock = "select pg_advisory_xact_lock(42)"

        async def hold_on() -> None:
            async with silent.transaction() as tx:
                await tx.fetch(lock)
                async with asyncio.timeout(60):
                    await other.fetch(lock)
                await tx.fetch("select 1")

        [error] = await asyncio.gather(hold_on(), return_exceptions=True)
        assert isinstance(error, Exception)
        assert is_transient(error)
        assert [tuple(row) for row in await silent.fetch("select 1")] == [(1,)]
