"""The PostgreSQL of a run: one for all its tests, with a migrated database that theirs are copied from."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import asyncpg
from pydantic import SecretStr

from penstock.settings import Settings
from penstock.store.schema import migrate
from tests.servers import databases
from tests.servers.postgres import FAST, NativePostgres

WATCHED: Mapping[str, str] = {
    **FAST,
    "log_line_prefix": "%d %e ",
    "log_min_messages": "error",
    "max_connections": "300",
    "track_functions": "all",
}
"""Its log names the database and the class of each error; it counts the calls of functions."""
INLINED = """
select p.oid::regprocedure::text as signature from pg_proc p join pg_language l on l.oid = p.prolang
where p.pronamespace = 'public'::regnamespace and l.lanname = 'sql' and p.proconfig is null
"""


@dataclass(frozen=True)
class Migrated:
    server: NativePostgres
    database: str


@contextmanager
def migrated() -> Iterator[Migrated]:
    """Tests of this process and of its children use it, and copy their databases from the one that is migrated."""
    server = NativePostgres(WATCHED)
    try:
        name = databases.new_name()
        os.environ["PENSTOCK_TEST_DATABASE_URL"] = server.dsn()
        os.environ["PENSTOCK_TEST_TEMPLATE"] = name
        os.environ["PENSTOCK_TEST_TRANSPORTS"] = "both"
        asyncio.run(_migrate(server, name))
        yield Migrated(server, name)
    finally:
        server.close()


async def _migrate(server: NativePostgres, name: str) -> None:
    url = await databases.create(server, name)
    await migrate.upgrade(Settings(database_url=SecretStr(url)))


async def count_all_calls(home: Migrated) -> None:
    """Keep PostgreSQL from inlining functions into statements, so that it counts their calls."""
    connection = await asyncpg.connect(home.server.dsn(home.database))
    for row in await connection.fetch(INLINED):
        await connection.execute(f"alter function {row['signature']} set jit = off")
    await connection.close()
