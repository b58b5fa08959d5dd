"""The database is away, from all processes or from one worker: which workers keep their work or end it, and the log
of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest
from pydantic import SecretStr

from penstock.errors import PenstockError
from penstock.settings import Settings
from penstock.store.schema import migrate
from penstock.store.session import session_options
from penstock.store.session.database import Database
from tests.chaos.proxy import Proxy
from tests.flows import shop
from tests.flows.installation import Installation
from tests.servers.pgbouncer import PgBouncer
from tests.servers.postgres import Postgres

LOCK = "select pg_advisory_xact_lock(7)"
THRESHOLDS = {"heartbeat_interval": 1.0, "stale_threshold": 5.0, "sweep_interval": 0.3}


@pytest.fixture
async def server(private_postgres: Callable[[], Postgres]) -> Postgres:
    postgres = await asyncio.to_thread(private_postgres)
    await migrate.upgrade(Settings(database_url=SecretStr(postgres.dsn())))
    return postgres


@pytest.fixture
async def apart(server: Postgres) -> AsyncIterator[Installation]:
    async with Installation(server.dsn(), None, **THRESHOLDS) as house:
        await house.apply(*shop.ALL)
        await house.executor()
        await house.worker(*shop.ALL)
        yield house


async def away(server: Postgres, seconds: float) -> None:
    await asyncio.to_thread(server.kill)
    await asyncio.sleep(seconds)
    await asyncio.to_thread(server.start)


async def ended(house: Installation, count: int) -> None:
    await house.until(
        "select 1 from execution where status = 'completed' having count(*) = $1", count, seconds=60
    )


async def test_an_outage_below_the_threshold_runs_nothing_again(
    apart: Installation, server: Postgres
) -> None:
    await apart.client.start_many("shop.wait_for", [{"seconds": 9.0}] * 10)
    await apart.until("select 1 from execution where status = 'running' having count(*) = 10")
    await away(server, 3.0)
    await ended(apart, 10)
    rows = await apart.rows("select attempt, recoveries from execution")
    assert {tuple(row) for row in rows} == {(1, 0)}
    await apart.sound()


async def test_a_longer_outage_ends_no_work_as_lost(apart: Installation, server: Postgres) -> None:
    await apart.client.start_many("shop.wait_for", [{"seconds": 9.0}] * 3)
    await apart.until("select 1 from execution where status = 'running' having count(*) = 3")
    await away(server, 8.0)
    await ended(apart, 3)
    rows = await apart.rows("select attempt, recoveries from execution")
    assert {tuple(row) for row in rows} == {(2, 0)}
    reasons = await apart.rows(
        "select distinct reason from history where old = 'running' and new = 'requested'"
    )
    others = [row["reason"] for row in reasons if "could not reach the installation for" not in row["reason"]]
    assert (bool(reasons), others) == (True, [])
    await apart.sound()


async def test_a_worker_that_alone_is_cut_off_ends_its_work_before_another_has_it(server: Postgres) -> None:
    running: list[int] = []
    counts: list[int] = []

    from penstock import action

    @action(pack="shop", ref="shop.watched")
    async def watched() -> str:
        running.append(1)
        counts.append(len(running))
        try:
            await asyncio.sleep(600 if len(counts) == 1 else 0)
        finally:
            running.pop()
        return "done"

    async with (
        Proxy(urlsplit(server.dsn()).port or 0) as proxy,
        Installation(server.dsn(), None, **THRESHOLDS) as house,
    ):
        through = urlsplit(server.dsn())
        address = urlunsplit(through._replace(netloc=f"{through.netloc.rsplit(':', 1)[0]}:{proxy.port}"))
        await house.apply(watched)
        await house.executor()
        await house.worker(watched, database_url=SecretStr(address))
        id = await house.client.start("shop.watched")
        await house.until("select 1 from execution where status = 'running'")
        proxy.hold("up", "down")
        await house.worker(watched)
        assert await house.client.result(id, timeout=60) == "done"
        assert counts == [1, 1], "never twice at once"
        rows = await house.rows("select error ->> 'message' as why from attempt")
        assert [row["why"].split("(")[1][:12] for row in rows] == ["no heartbeat"]
        proxy.heal()
        await house.sound()


@pytest.mark.parametrize("pooled", [False, True])
async def test_a_client_cut_off_in_a_transaction_loses_its_locks(
    database: str, pgbouncer: PgBouncer, pooled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL does not hear that it is gone: the connection stays open."""
    monkeypatch.setattr(session_options, "LEAST_SILENCE", 0.5)
    url = urlsplit(pgbouncer.dsn(database.rsplit("/", 1)[1]) if pooled else database)
    async with Proxy(url.port or 0) as proxy:
        place = f"{url.netloc.rpartition(':')[0]}:{proxy.port}"
        settings = Settings(
            database_pooler=pooled, heartbeat_interval=0.1, stale_threshold=0.5, sweep_interval=0.3
        )
        far, near = (
            Database(settings.model_copy(update={"database_url": SecretStr(address)}), role="test")
            for address in (urlunsplit(url._replace(netloc=place)), url.geturl())
        )
        locked, healed = asyncio.Event(), asyncio.Event()
        cut_off = asyncio.create_task(lock(far, locked, healed))
        await locked.wait()
        proxy.hold("up", "down")
        async with asyncio.timeout(20), near.session().transaction() as tx:
            await tx.fetch(LOCK)
        proxy.heal()
        healed.set()
        with pytest.raises((PenstockError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError)):
            await cut_off
        await far.close()
        await near.close()


async def lock(database: Database, locked: asyncio.Event, healed: asyncio.Event) -> None:
    async with database.session().transaction() as tx:
        await tx.fetch(LOCK)
        locked.set()
        await healed.wait()
