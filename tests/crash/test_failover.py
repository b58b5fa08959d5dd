"""A primary that hangs, and a standby that is cut off: what was acknowledged is there, and everything goes on."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from uuid import UUID

import asyncpg
import pytest
from pydantic import SecretStr

from penstock.client.client import Client
from penstock.errors import ConnectionFailed, PenstockError
from penstock.settings import Settings
from penstock.store.schema import migrate
from penstock.store.session import unresponsive_server
from penstock.store.session.database import Database
from tests.flows import shop
from tests.flows.installation import AS_USED, Installation
from tests.servers.pgbouncer import PgBouncer
from tests.servers.replicated import ReplicatedPostgres

BEATS = {"heartbeat_interval": 1.0, "stale_threshold": 60.0}
WAITING = 3.0
"""Seconds for which commits wait for a standby: some heartbeats."""
ALIVE = (
    "select min(clock_timestamp() - beat_at) < interval '2.5 s' as alive from process where state = 'active'"
)


@pytest.fixture
async def home(pair: ReplicatedPostgres) -> AsyncIterator[Installation]:
    """Beats each second, and hand back no work within a minute."""
    await migrate.upgrade(Settings(database_url=SecretStr(pair.dsn())))
    async with Installation(pair.dsn(), None, **BEATS) as house:
        yield house


async def test_work_goes_on_at_the_standby_when_the_primary_hangs(
    pair: ReplicatedPostgres, home: Installation
) -> None:
    """Its connections stay open and are never answered: no error tells a client to look elsewhere."""
    await home.start(*shop.STURDY)
    assert await home.client.run("shop.sturdy", {"n": 1}, timeout=30) == {"n": 1}
    pair.freeze()
    started = asyncio.create_task(home.client.start("shop.sturdy", {"n": 2}, key="once"))
    await asyncio.to_thread(pair.promote)
    with contextlib.suppress(ConnectionFailed, asyncpg.PostgresConnectionError):
        async with asyncio.timeout(60):
            await started  # the caller gets an error, or it was tried again
    execution = await home.client.start("shop.sturdy", {"n": 2}, key="once")
    assert await home.client.result(execution, timeout=60) == {"n": 2}


@pytest.mark.parametrize("pooled", [False, True])
async def test_a_statement_that_takes_long_is_left_to_run(
    database: str, pgbouncer: PgBouncer, pooled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind a pooler, too, that the settings do not tell of, as one that pools by session need not be told of."""
    monkeypatch.setattr(unresponsive_server, "SILENT", 0.5)
    url = pgbouncer.dsn(database.rsplit("/", 1)[1]) if pooled else database
    home = Database(Settings(database_url=SecretStr(url)), role="test")
    try:
        [[value]] = await home.session().fetch("select 7 from pg_sleep(2)")
        assert value == 7
    finally:
        await home.close()


async def test_commits_wait_for_a_standby_and_live_services_stay_alive(
    pair: ReplicatedPostgres, home: Installation
) -> None:
    await home.start(*shop.STURDY)
    pair.freeze_standby()
    started = asyncio.create_task(home.client.start("shop.sturdy", {"n": 1}))
    await asyncio.sleep(WAITING)
    assert not started.done()
    [[alive]] = await (await home.parts()).database.session().fetch(ALIVE)
    assert alive
    pair.thaw_standby()
    execution = await started
    assert await home.client.result(execution, timeout=30) == {"n": 1}
    await home.sound()


async def test_work_that_only_the_primary_has_is_not_acknowledged(
    pair: ReplicatedPostgres, home: Installation
) -> None:
    """A caller gives up while its commit waits, and asks again with the same key: that waits too. Were it told that the work
    is there, a failover would make it untrue."""
    await home.apply(*shop.STURDY)
    pair.freeze_standby()
    for _ in range(2):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(WAITING):
                await home.client.start("shop.sturdy", {"n": 1}, key="once")
    pair.kill()
    pair.thaw_standby()
    await asyncio.to_thread(pair.promote)
    async with Client.connect(home.settings(**AS_USED)) as client:
        await client.start("shop.sturdy", {"n": 1}, key="once")
    [[count]] = await home.rows("select count(*) from execution")
    assert count == 1


@pytest.mark.parametrize("transport", ["postgres", "rabbitmq"], indirect=True)
async def test_a_failover_that_loses_the_last_commits_leaves_an_installation_that_goes_on(
    pair: ReplicatedPostgres, broker: str | None
) -> None:
    """The standby is asynchronous and was behind, so the database goes back by a moment. Workers and the broker have messages of
    work that the database has lost."""
    await migrate.upgrade(Settings(database_url=SecretStr(pair.dsn())))
    async with Installation(pair.dsn(), broker, stale_threshold=10.0) as house:
        await house.start(*shop.ALL, *shop.STURDY)
        stop = asyncio.Event()
        acknowledged: set[UUID] = set()

        async def load() -> None:
            n = 0
            while not stop.is_set():
                for ref in ("shop.sturdy", "shop.narrow", "shop.in_steps"):
                    with contextlib.suppress(PenstockError, OSError):
                        acknowledged.add(await house.client.start(ref, {"n": n}))
                n += 1

        loading = asyncio.create_task(load())
        await house.until("select from execution where status = 'completed' having count(*) > 20")
        await asyncio.to_thread(pair.kill_standby)
        await asyncio.to_thread(pair.take_out_standby)
        [[count]] = await house.rows("select count(*) from execution")
        await house.until("select from execution having count(*) > $1", count + 60)
        await asyncio.to_thread(pair.kill)
        await asyncio.to_thread(pair.start_standby)
        await asyncio.to_thread(pair.promote)
        connection = await asyncpg.connect(pair.primary_dsn())
        ids = {row["id"] for row in await connection.fetch("select id from execution")}
        await connection.close()
        assert acknowledged - ids, "something was lost"
        await asyncio.sleep(1)
        stop.set()
        await loading
        await house.quiet(60)
        assert set(await house.statuses()) == {"completed"}
        assert await house.rows("select from dead_letter") == []
        await house.sound()
