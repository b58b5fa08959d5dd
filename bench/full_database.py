"""A database that has been worked on for weeks: filling it with what was, reading it for minutes, dropping a day of it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
from pydantic import SecretStr

from bench.servers import Postgres
from penstock import Settings
from penstock.store.schema import migrate

DAYS = 20
"""Over which the filling is spread."""
PARTITION = """
create table if not exists {parent}_{name:%Y%m%d} partition of {parent} for values
from ('{name:%Y-%m-%d} 00:00+00') to ('{next:%Y-%m-%d} 00:00+00')
"""
ID = """
(lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7' || substr(md5(n::text), 1, 3) || '8'
    || substr(md5(n::text), 4, 15))::uuid
"""
ARCHIVE = f"""
insert into archive (id, finished_at, status, action, namespace, root, created_at, attempt, failures, recoveries, priority,
    definition_id, params, result)
select id, at, case when n % 50 = 7 then 'failed' else 'completed' end,
    case when n % 10000 = 3 then 'bench.seldom' else 'bench.noop' end,
    case when n % 10000 = 5 then 'small' else 'public' end || '::bench::noop', id, at, 1, 0, 0, 0, 1,
    jsonb_build_object('index', n), to_jsonb(n)
from (select {ID} as id, at, n from (
    select $1::timestamptz + interval '1 day' * (n::float8 / $2) as at, n from generate_series(0, $2 - 1) n) y) x
"""
HISTORY = f"""
insert into history (execution_id, at, old, new, attempt, actor)
select {ID}, at, s.old, s.new, 1, 'w' from (
    select $1::timestamptz + interval '1 day' * (n::float8 / $2) as at, n from generate_series(0, $2 - 1) n) y
cross join (values (null, 'requested'), ('requested', 'scheduled'), ('scheduled', 'running'), ('running', 'completed'))
    s (old, new)
"""


async def new_full_database(server: Postgres, name: str, archived: int) -> str:
    """Return the address of a new database in which so many have ended."""
    await server.execute(f"create database {name}")
    url = server.url(name)
    await migrate.upgrade(Settings(database_url=SecretStr(url)))
    await fill(url, archived)
    return url


async def fill(url: str, archived: int) -> None:
    """`archived` finished executions, with four moves each, over the days before today."""
    connection = await asyncpg.connect(url)
    today = await connection.fetchval("select date_trunc('day', now() at time zone 'utc')")
    began = time.monotonic()
    for back in range(DAYS, 0, -1):
        [[name, next_day]] = await connection.fetch(
            "select $1::timestamp - make_interval(days => $2), $1::timestamp - make_interval(days => $2 - 1)",
            today,
            back,
        )
        for parent in ("archive", "history"):
            await connection.execute(PARTITION.format(parent=parent, name=name, next=next_day))
        at = await connection.fetchval("select $1::timestamp at time zone 'utc'", name)
        await connection.execute(ARCHIVE, at, archived // DAYS)
        await connection.execute(HISTORY, at, archived // DAYS)
    await connection.execute("vacuum analyze archive")
    await connection.execute("vacuum analyze history")
    await connection.execute("checkpoint")
    print(
        f"filled with {archived:,} executions and {4 * archived:,} moves in {time.monotonic() - began:.0f} s",
        flush=True,
    )
    await connection.close()


@asynccontextmanager
async def reading(url: str) -> AsyncIterator[None]:
    """Somebody who has read something and holds his transaction open."""
    connection = await asyncpg.connect(url)
    transaction = connection.transaction(isolation="repeatable_read", readonly=True)
    await transaction.start()
    await connection.fetchval("select count(*) from process")
    began = time.monotonic()
    yield
    print(f"the reader's transaction was open for {time.monotonic() - began:.0f} s", flush=True)
    await transaction.rollback()
    await connection.close()


async def drop_a_day(url: str) -> dict[str, float]:
    """Drop the oldest day as the retention does, and return the seconds that it took."""
    connection = await asyncpg.connect(url)
    seconds = {}
    for parent in ("history", "archive"):
        name = await connection.fetchval("select min(n) from old_partitions($1, interval '1 day') n", parent)
        began = time.perf_counter()
        await connection.execute(f"begin; set local lock_timeout = '200ms'; drop table {name}; commit")
        seconds[parent] = time.perf_counter() - began
    await connection.close()
    return seconds
