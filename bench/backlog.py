"""The cost of a backlog for executions outside it, and the cost of admitting one of many executions.

    python -m bench.backlog                       # up to 100,000 waiters: some minutes
    python -m bench.backlog --most 1000

Counts statements and buffers of PostgreSQL with pg_stat_statements; no time is measured, so a busy machine changes nothing.
"""

from __future__ import annotations

import argparse
import asyncio
from dataclasses import dataclass
from uuid import UUID

import asyncpg
from pydantic import SecretStr

from bench.servers import Postgres
from penstock import Limit, Settings
from penstock.store.schema import migrate
from penstock.store.session.database import Database
from tests.penstock.store.admission.desk import Desk

WORK = 1000
"""Executions of the unrelated work."""
BATCH = 50
TURN = 20
"""Executions that end together, and as many that are let in for them."""
COUNTED = """
select coalesce(sum(calls), 0)::bigint as statements,
    coalesce(sum(shared_blks_hit + shared_blks_read) filter (where toplevel), 0)::bigint as buffers
from pg_stat_statements where dbid = (select oid from pg_database where datname = current_database())
    and query not like '%pg_stat_statements%'
"""
HOT = Limit(100, ref="shop.hot", scope="shop")
EACH = Limit(5, ref="shop.each", scope="shop.charge", by="customer")


@dataclass(frozen=True)
class Cost:
    statements: float
    buffers: float


class Meter:
    """Counts what one database executes."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    async def reset(self) -> None:
        await self._connection.execute("select pg_stat_statements_reset()")

    async def read(self) -> Cost:
        [row] = await self._connection.fetch(COUNTED)
        return Cost(row["statements"], row["buffers"])


async def unrelated(desk: Desk) -> None:
    """So many executions without a limit, from request to end."""
    for _ in range(WORK // BATCH):
        ids = await desk.request(BATCH, "mail.send")
        await desk.admit(ids)
        await desk.claim(ids)
        await desk.finish(ids)


async def waiting(desk: Desk, count: int, customers: int | None) -> None:
    """`count` more wait behind the limit; or, without one, for nobody: the control."""
    for first in range(0, count, 500):
        size = min(500, count - first)
        if customers is None:
            await desk.request(size, "mail.send")
            continue
        if customers:
            ids = []
            for n in range(size):
                ids += await desk.request(1, customer=(first + n) % customers)
        else:
            ids = await desk.request(size)
        await desk.admit(ids)


async def held(desk: Desk) -> list[UUID]:
    rows = await desk.session.fetch(
        "select id from execution where status = 'scheduled' order by ready_at, id limit $1", TURN
    )
    return [row["id"] for row in rows]


async def turnover(desk: Desk, meter: Meter) -> Cost:
    """Return the cost of an execution when TURN executions end and as many are admitted. The last of three rounds counts,
    since PostgreSQL has made its plans by then."""
    for _ in range(3):
        ids = await held(desk)
        await desk.claim(ids)
        attempts = await desk.session.fetch("select id from execution where id = any($1::uuid[])", ids)
        assert len(attempts) == TURN
        await meter.reset()
        await desk.finish(ids)
        cost = await meter.read()
    return Cost(round(cost.statements / TURN, 1), round(cost.buffers / TURN))


async def prepared(server: Postgres, name: str) -> tuple[Database, asyncpg.Connection]:
    """Return a new database with the schema, and a connection that a Meter can read. The caller closes both."""
    await server.execute(f"create database {name}")
    settings = Settings(database_url=SecretStr(server.url(name)))
    await migrate.upgrade(settings)
    connection = await asyncpg.connect(server.url(name))
    await connection.execute("create extension pg_stat_statements")
    return Database(settings, role="bench"), connection


async def measure(server: Postgres, sizes: list[int], customers: int | None) -> None:
    limits = (HOT, EACH) if customers else (HOT,)
    name = "backlog_control" if customers is None else f"backlog_{customers}"
    home, connection = await prepared(server, name)
    meter, desk, waiting_count = Meter(connection), Desk(home), 0
    await desk.open(*limits)
    heading = {None: "rows that wait for nothing, as a control", 0: "behind a limit of 100"}.get(
        customers, f"behind a limit of 100 and one of 5 for each of {customers} customers"
    )
    print(
        f"\n{heading}\n{'waiting':>8}  {'per 1,000 of unrelated work':>34}  {'to end one and let one in':>30}"
    )
    for size in sizes:
        await waiting(desk, size + (100 + TURN * 3 if waiting_count == 0 else 0) - waiting_count, customers)
        waiting_count = size
        await connection.execute("analyze")
        # Plans are made, caches are warm, and tables have grown out of their first pages.
        for _ in range(1 if size else 5):
            await unrelated(desk)
        await meter.reset()
        await unrelated(desk)
        work = await meter.read()
        if size and customers is not None:
            turn = await turnover(desk, meter)
            await waiting(desk, 3 * TURN, customers)
            last = f"{turn.statements:>8} statements {turn.buffers:>6} buffers"
        else:
            last = ""
        print(f"{size:>8}  {work.statements:>10} statements {work.buffers:>8} buffers  {last}", flush=True)
    await desk.sound()
    await connection.close()
    await home.close()


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--most", type=int, default=100_000)
    parser.add_argument("--customers", type=int, default=1000, help="0: only the simple limit")
    options = parser.parse_args()
    sizes = [size for size in (0, 100, 1000, 10_000, 100_000) if size <= options.most]
    server = await asyncio.to_thread(
        Postgres, **{"shared_preload_libraries": "pg_stat_statements", "pg_stat_statements.track": "all"}
    )
    try:
        for customers in (None, 0, options.customers) if options.customers else (None, 0):
            await measure(server, sizes, customers)
    finally:
        await asyncio.to_thread(server.close)


if __name__ == "__main__":
    asyncio.run(main())
