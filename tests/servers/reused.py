"""Databases of tests, emptied and used again: to empty one costs a tenth of what a copy of the template costs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from io import BytesIO

import asyncpg

from tests.servers import databases
from tests.servers.postgres import Postgres

SESSIONS = "select count(*) from pg_stat_activity where datname = $1 and backend_type = 'client backend'"
SETTINGS = """
select exists (select from pg_db_role_setting where setdatabase = d.oid)
    or d.datacl is not null or d.datconnlimit <> -1 or not d.datallowconn
from pg_database as d where d.datname = $1
"""
"""Return true if a database or a role in it has settings or rights of its own."""
USER = 16384
"""The first number of what is not part of PostgreSQL."""
CATALOGS = (
    "pg_attrdef.adrelid",
    "pg_attribute.attrelid",
    "pg_constraint.oid",
    "pg_extension.oid",
    "pg_index.indexrelid",
    "pg_namespace.oid",
    "pg_policy.oid",
    "pg_proc.oid",
    "pg_rewrite.oid",
    "pg_statistic.starelid",
    "pg_trigger.oid",
    "pg_type.oid",
)
"""Tables that tell a changed schema, and the column of each that tells what is not part of PostgreSQL."""
SCHEMA = "select concat_ws('/', {})".format(
    ", ".join(
        [
            f"(select md5(string_agg(concat_ws(' ', oid, relname, relowner, relacl, reloptions), ',' order by oid))"
            f" from pg_class where oid >= {USER})",
            *(
                f"(select concat(count(*), '-', sum(xmin::text::bigint)) from {name} where {column} >= {USER})"
                for name, column in (entry.split(".") for entry in CATALOGS)
            ),
        ]
    )
)
WRITTEN = """
select oid::regclass::text from pg_class
where relkind = 'r' and relnamespace = 'public'::regnamespace and pg_relation_size(oid) > 0
"""
EMPTY = "select name from unnest($1::text[]) as name where pg_relation_size(name::regclass) = 0"
SEQUENCES = "select format('%I.%I', schemaname, sequencename), last_value from pg_sequences order by 1"
PATIENCE = 20
"""Looks, each 10 ms after the last, for sessions that end."""


@dataclass(frozen=True)
class Original:
    """The content of a database before a test: its schema, the rows of its tables, and its sequences."""

    schema: str
    rows: dict[str, bytes]
    sequences: list[asyncpg.Record]


class Reused:
    """The databases of one process. Each is a copy of the template when a test gets it."""

    def __init__(self, server: Postgres, template: str) -> None:
        self._server, self._template = server, template
        self._free: list[str] = []
        self._original: Original | None = None

    async def take(self) -> str:
        """Return the name of a database that no test uses."""
        if self._free:
            return self._free.pop()
        name = databases.new_name()
        await databases.create(self._server, name, template=self._template)
        if self._original is None:
            self._original = await self._read(name)
        return name

    async def give_back(self, name: str) -> None:
        """Empty a database for the next test. One that is still in use, or has another schema, is dropped."""
        if await self._is_free(name) and await self._emptied(name):
            self._free.append(name)
        else:
            await databases.drop(self._server, name)

    async def close(self) -> None:
        """Drop all databases."""
        while self._free:
            await databases.drop(self._server, self._free.pop())

    async def _is_free(self, name: str) -> bool:
        async with databases.connected(self._server) as connection:
            if await connection.fetchval(SETTINGS, name):
                return False
            for _ in range(PATIENCE):
                if not await connection.fetchval(SESSIONS, name):
                    return True
                await asyncio.sleep(0.01)
        return False

    async def _read(self, name: str) -> Original:
        connection = await asyncpg.connect(self._server.dsn(name))
        try:
            schema, sequences = await connection.fetchval(SCHEMA), await connection.fetch(SEQUENCES)
            rows = {row[0]: await _content(connection, row[0]) for row in await connection.fetch(WRITTEN)}
            return Original(schema, rows, sequences)
        finally:
            await connection.close()

    async def _emptied(self, name: str) -> bool:
        assert self._original is not None
        connection = await asyncpg.connect(
            self._server.dsn(name), server_settings={"session_replication_role": "replica"}
        )
        try:
            if await connection.fetchval(SCHEMA) != self._original.schema:
                return False
            original = self._original.rows
            written = [row[0] for row in await connection.fetch(WRITTEN)]
            same = [name for name in original if await _content(connection, name) == original[name]]
            if changed := {*original, *written} - {*same}:
                await connection.execute(f"truncate {', '.join(changed)} cascade")
            for name in [row[0] for row in await connection.fetch(EMPTY, [*original])]:
                await connection.copy_to_table(name, source=BytesIO(original[name]), format="binary")
            for sequence, last in self._original.sequences:
                await connection.fetchval(
                    "select setval($1::regclass, coalesce($2, 1), $2::bigint is not null)", sequence, last
                )
            await connection.execute("select pg_stat_reset()")
            return True
        finally:
            await connection.close()


async def _content(connection: asyncpg.Connection[asyncpg.Record], table: str) -> bytes:
    content = BytesIO()
    await connection.copy_from_table(table, output=content, format="binary")
    return content.getvalue()
