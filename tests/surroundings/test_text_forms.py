"""Instants and timeouts that SQL writes and reads again, in sessions of any DateStyle, TimeZone and lock_timeout."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest
from pydantic import SecretStr

from penstock.settings import Settings
from penstock.store.schema import migrate
from tests.servers import databases
from tests.servers.postgres import NativePostgres, Postgres
from tests.surroundings.postgres_settings import TEXT_FORMS
from tests.surroundings.roles import LISTS

BOUNDS = """
select c.relname as name, pg_get_expr(c.relpartbound, c.oid) as bound from pg_class c
where c.relispartition and c.relkind = 'r' and c.relname ~ '_[0-9]{8}$'
"""
KEYS = "array[(1, '')::limit_key]"


@pytest.fixture(scope="module")
def older_postgres() -> Iterator[Postgres]:
    """PostgreSQL 16, which reads an abbreviation of a zone by its own table. 18 asks the session's zone first."""
    server = NativePostgres(major=16)
    yield server
    server.close()


@pytest.fixture(params=["this version", "16"])
def server(request: pytest.FixtureRequest) -> Postgres:
    name = "postgres_server" if request.param == "this version" else "older_postgres"
    server: Postgres = request.getfixturevalue(name)
    return server


async def test_partitions_begin_at_midnight_in_utc_in_any_session(server: Postgres) -> None:
    """The test creates partitions as `doctor` tells operators: in psql, with the settings of their sessions."""
    url = await databases.create(server, databases.new_name())
    await migrate.upgrade(Settings(database_url=SecretStr(url)))
    connection = await asyncpg.connect(url)
    days = 8  # the migration has made those of seven days
    for settings in TEXT_FORMS.values():
        for name, value in settings.items():
            await connection.execute(f"set {name} = {value}" if name in LISTS else f"set {name} = '{value}'")
        assert await connection.fetchval("select make_partitions($1)", days) > 0
        await connection.execute("reset all")
        days += 1
    await connection.execute("set TimeZone = 'UTC'")
    for row in await connection.fetch(BOUNDS):
        day = datetime.strptime(row["name"][-8:], "%Y%m%d").replace(tzinfo=UTC)
        begin, end = (f"'{one:%Y-%m-%d} 00:00:00+00'" for one in (day, day + timedelta(days=1)))
        assert row["bound"] == f"FOR VALUES FROM ({begin}) TO ({end})", row
    await connection.close()


async def test_lock_timeout_of_the_caller_holds_after_a_key_was_locked(database: str) -> None:
    connection, holder = await asyncpg.connect(database), await asyncpg.connect(database)
    for key_is_free in (True, False):
        async with connection.transaction(), holder.transaction():
            await connection.execute("set local lock_timeout = '7s'")
            if not key_is_free:
                await holder.fetch(f"select lock_keys({KEYS})")
            assert await connection.fetchval(f"select lock_keys_soon({KEYS})") is key_is_free
            assert await connection.fetchval("show lock_timeout") == "7s"
    await connection.close()
    await holder.close()
