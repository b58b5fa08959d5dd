"""The effects of defaults of a role and a database on sessions, and those of a stale snapshot on a limit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import asyncpg
import pytest
from pydantic import SecretStr

from penstock import Limit, action
from penstock.errors import ConfigurationError
from penstock.operate.doctor import postgres
from penstock.settings import Settings
from penstock.store.session.database import Database, Session
from tests.flows.installation import Installation
from tests.servers.pgbouncer import PgBouncer
from tests.servers.postgres import Postgres
from tests.surroundings.play import OF_POOLER
from tests.surroundings.postgres_settings import alone

RELIED_UPON = {
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "array_nulls": "on",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "jit": "off",
    "lock_timeout": "0",
    "plan_cache_mode": "auto",
    "search_path": "public, pg_temp",
    "standard_conforming_strings": "on",
    "statement_timeout": "0",
    "transaction_isolation": "read committed",
    "transaction_read_only": "off",
    "transaction_timeout": "0",
    "transform_null_equals": "off",
}
PATIENT = {"statement_timeout": "0", "lock_timeout": "0", "idle_session_timeout": "0"}
"""The settings of a session of the test itself, whatever the database has."""
SEEN = "select name, setting from pg_settings where name = any($1::text[])"


@action(pack="stale", limits=[Limit(1)])
async def narrow() -> None: ...


@pytest.fixture(params=["connection", "pooler"])
async def hostile(request: pytest.FixtureRequest, database: str) -> AsyncIterator[tuple[Database, bool]]:
    """A database whose defaults are all other ones, on connections of one's own or behind PgBouncer."""
    name = urlsplit(database).path.lstrip("/")
    control = await asyncpg.connect(database)
    pooled = request.param == "pooler"
    chosen = {setting: value for of in alone(14).values() for setting, value in of.items()}
    chosen |= {"default_transaction_isolation": "repeatable read", "TimeZone": "Asia/Kolkata"}
    del chosen["force_parallel_mode"]
    for setting, value in chosen.items():
        if not (pooled and setting in OF_POOLER):
            text = (value or "''") if setting in ("search_path", "DateStyle") else f"'{value}'"
            await control.execute(f"alter database {name} set {setting} = {text}")
    await control.close()
    url = database
    if pooled:
        pgbouncer: PgBouncer = request.getfixturevalue("pgbouncer")
        url = pgbouncer.dsn(name)
    home = Database(Settings(database_url=SecretStr(url), database_pooler=pooled), role="test")
    yield home, pooled
    await home.close()


async def test_transaction_sees_no_default_of_its_database(hostile: tuple[Database, bool]) -> None:
    home, _ = hostile
    async with home.session().transaction() as tx:
        seen = {
            row["name"]: row["setting"].replace('"', "") for row in await tx.fetch(SEEN, list(RELIED_UPON))
        }
    assert seen == {name: value for name, value in RELIED_UPON.items() if name in seen}
    assert len(seen) >= len(RELIED_UPON) - 1  # a version before 17 has no transaction_timeout


async def test_statement_alone_sees_no_default_of_its_database(hostile: tuple[Database, bool]) -> None:
    home, _ = hostile
    for session in (home.session(), home.session(relaxed=True, timeout=30), home.session()):
        rows = await session.fetch(SEEN, list(RELIED_UPON))
        seen = {row["name"]: row["setting"].replace('"', "") for row in rows}
        seen["statement_timeout"] = "0" if seen["statement_timeout"] == "30000" else seen["statement_timeout"]
        assert seen == {name: value for name, value in RELIED_UPON.items() if name in seen}


async def test_pooler_that_settings_do_not_name_is_named_as_it_refuses(
    database: str, postgres_server: Postgres
) -> None:
    """PgBouncer as it is installed: it ignores no setting that a client names as it connects."""
    pooler = PgBouncer(postgres_server.dsn(), ignored="")
    url = pooler.dsn(urlsplit(database).path.lstrip("/"))
    try:
        for pooled in (False, True):
            home = Database(Settings(database_url=SecretStr(url), database_pooler=pooled), role="test")
            try:
                if pooled:
                    assert [tuple(row) for row in await home.session().fetch("select 7")] == [(7,)]
                else:
                    with pytest.raises(ConfigurationError, match=r"a pooler at .* refuses") as refused:
                        await home.session().fetch("select 7")
                    assert "PENSTOCK_DATABASE_POOLER" in (refused.value.hint or "")
            finally:
                await home.close()
    finally:
        pooler.close()


async def test_doctor_warns_of_a_freeze_that_sessions_do_not_follow(database: str) -> None:
    name = urlsplit(database).path.lstrip("/")
    home = Database(Settings(database_url=SecretStr(database)), role="test")
    try:
        for value, state in (("off", "ok"), ("on", "warning")):
            await home.session().fetch(f"alter database {name} set default_transaction_read_only = {value}")
            writable = [one for one in await postgres.findings(home.session()) if one.what == "writable"]
            assert [one.state for one in writable] == [state]
        assert "allow_connections false" in (writable[0].fix or "")
    finally:
        await home.close()


async def _waits_for_lock(session: Session) -> None:
    async with asyncio.timeout(20):
        while not await session.fetch(
            "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
        ):
            await asyncio.sleep(0.01)


async def test_release_sees_executions_queued_while_it_waited(
    hostile: tuple[Database, bool], database: str
) -> None:
    """The releasing transaction begins before the other one commits, so its first snapshot does not show who queued."""
    home, _ = hostile
    async with Installation(database, None) as house:
        await house.apply(narrow)
        await house.worker(narrow, routes="elsewhere")  # a live worker that takes nothing
        await house.until("update process set routes = '{default}' where kind = 'worker' returning 1")
        await house.rows("select notice_workers()")
        holder = await house.client.start("stale.narrow")
        operator = await asyncpg.connect(database, server_settings=PATIENT)  # its lock has to last
        key = "(select (id, '')::limit_key from concurrency_limit) l (k)"
        await operator.execute("set search_path = public")
        await operator.fetch(
            f"select pg_advisory_lock_shared(7, -1), pg_advisory_lock(7, key_lock(k)) from {key}"
        )
        waiter = await house.client.start("stale.narrow")  # the key is taken: an executor has to place it
        await operator.close()
        assert await house.statuses() == {"scheduled": 1, "requested": 1}
        first, second, watcher = home.session(), home.session(), home.session()
        async with first.transaction() as tx:
            await tx.fetch("select * from unnest(schedule_executions($1::uuid[]))", [waiter])
            releasing = asyncio.create_task(
                second.fetch("select * from cancel_executions($1::uuid[], 'asked')", [holder])
            )
            await _waits_for_lock(watcher)
        await releasing
        assert (await house.client.get(holder)).status == "cancelled"
        assert (await house.client.get(waiter)).status == "scheduled"
        await house.sound()
