"""A database that a test used is like a fresh one for the next test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import asyncpg
import pytest

from tests.servers.postgres import Postgres
from tests.servers.reused import Reused

TABLES = """
select oid::regclass::text from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace order by relname
"""


@pytest.fixture
async def pool(postgres_server: Postgres, template: str) -> AsyncIterator[Reused]:
    pool = Reused(postgres_server, template)
    yield pool
    await pool.close()


async def _content(server: Postgres, name: str) -> list[str]:
    connection = await asyncpg.connect(server.dsn(name))
    try:
        tables = [f"select row.*::text from {table} as row" for [table] in await connection.fetch(TABLES)]
        queries = [*tables, "select * from pg_sequences order by 1, 2"]
        return [str(await connection.fetch(query)) for query in queries]
    finally:
        await connection.close()


async def _change(server: Postgres, name: str, *statements: str) -> None:
    connection = await asyncpg.connect(server.dsn(name))
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


async def test_rows_and_sequences_are_those_of_the_template(pool: Reused, postgres_server: Postgres) -> None:
    name = await pool.take()
    fresh = await _content(postgres_server, name)
    sequences = (
        "select format('select nextval(%L)', format('%I.%I', schemaname, sequencename)) from pg_sequences"
    )
    await _change(
        postgres_server,
        name,
        "insert into hold (kind, name, by) values ('tenant', 'a', 'b')",
        "truncate definition cascade",
        "delete from legal_move where ctid = (select min(ctid) from legal_move)",
        f"do $$ declare s text; begin for s in {sequences} loop execute s; end loop; end $$",
    )
    assert await _content(postgres_server, name) != fresh
    await pool.give_back(name)
    assert await pool.take() == name
    assert await _content(postgres_server, name) == fresh
    await pool.give_back(name)


@pytest.mark.parametrize(
    "statement",
    [
        "create table extra (id integer)",
        "alter table hold drop constraint hold_pkey",
        "alter table hold add column extra integer",
        "create or replace function extra() returns integer language sql as 'select 1'",
        "grant select on hold to public",
        "alter table hold set (fillfactor = 50)",
        "analyze legal_move",
        "do $$ begin execute format('alter database %I set datestyle = ''german''', current_database()); end $$",
        "do $$ begin execute format('revoke connect on database %I from public', current_database()); end $$",
    ],
)
async def test_changed_database_is_not_used_again(
    pool: Reused, postgres_server: Postgres, statement: str
) -> None:
    name = await pool.take()
    await _change(postgres_server, name, statement)
    await pool.give_back(name)
    further = await pool.take()
    await pool.give_back(further)
    assert further != name


async def test_database_with_a_session_is_not_used_again(pool: Reused, postgres_server: Postgres) -> None:
    name = await pool.take()
    connection = await asyncpg.connect(postgres_server.dsn(name))
    await pool.give_back(name)
    further = await pool.take()
    await pool.give_back(further)
    assert further != name
    connection.terminate()
