"""The cost of a list of fifty executions, by its filters, on a full database and on a small one.

    python -m bench.lists                          # ten million in the archive: ten minutes, and 12 GB of disk
    python -m bench.lists --archived 100000        # a short form of it

Pages are those that PostgreSQL reads, in memory or not: they do not depend on how busy the machine is. Times do.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import asyncpg
from pydantic import SecretStr

from bench.backlog import Meter, prepared
from bench.figures import percentile
from bench.full_database import fill
from bench.servers import Postgres
from penstock import Settings
from penstock.store.executions import execution_list
from penstock.store.executions.execution_list import ExecutionFilter
from penstock.store.session.database import Database, Session

SMALL = 2_000
"""Finished executions of the database that the full one is set beside."""
TIMES = 20
LONGEST = 30.0
"""Seconds for one list; what takes longer is looked at no further."""
YESTERDAY, WEEK = (datetime.now(UTC) - timedelta(days=days) for days in (1, 7))
LISTS = {
    "all": ExecutionFilter(),
    "open": ExecutionFilter(ended=False),
    "failed, one in fifty": ExecutionFilter(status=["failed"]),
    "timed out, none": ExecutionFilter(status=["timed_out"]),
    "an action that runs often": ExecutionFilter(action="bench.noop"),
    "an action that runs seldom, one in 10,000": ExecutionFilter(action="bench.seldom"),
    "an action that nobody has": ExecutionFilter(action="bench.none"),
    "an action's failed": ExecutionFilter(action="bench.noop", status=["failed"]),
    "before a week ago": ExecutionFilter(until=WEEK),
    "since yesterday": ExecutionFilter(since=YESTERDAY),
    "a key that nobody has": ExecutionFilter(key="none"),
    "a parameter, since yesterday": ExecutionFilter(params={"index": 77}, since=YESTERDAY),
    "a parameter": ExecutionFilter(params={"index": 77}),
    "a tenant that has much": ExecutionFilter(tenants=["public"]),
    "a tenant that has one in 10,000": ExecutionFilter(tenant="small"),
    "a tenant that has nothing": ExecutionFilter(tenants=["none"]),
}


@dataclass(frozen=True)
class Cost:
    """`pages` is None where it took too long."""

    pages: float | None
    p50: float
    """Milliseconds."""
    p95: float


async def cost(session: Session, meter: Meter, filters: ExecutionFilter) -> Cost:
    milliseconds: list[float] = []
    try:
        for _ in range(TIMES):
            if len(milliseconds) == 1:
                await meter.reset()  # the first one brought pages and plans into memory
            began = time.perf_counter()
            await asyncio.wait_for(execution_list.page(session, filters), LONGEST)
            milliseconds.append(1000 * (time.perf_counter() - began))
            if sum(milliseconds) > 1000 * LONGEST and len(milliseconds) > 1:
                break
    except TimeoutError:
        return Cost(None, 1000 * LONGEST, 1000 * LONGEST)
    pages = (await meter.read()).buffers / (len(milliseconds) - 1)
    return Cost(pages, percentile(milliseconds[1:], 0.5), percentile(milliseconds[1:], 0.95))


async def measured(home: Database, connection: asyncpg.Connection) -> dict[str, Cost]:
    session, meter = home.session(), Meter(connection)
    return {name: await cost(session, meter, filters) for name, filters in LISTS.items()}


async def filled(server: Postgres, archived: int) -> dict[str, Cost]:
    name = f"lists_{archived}"
    home, connection = await prepared(server, name)
    await fill(server.url(name), archived)
    await connection.execute("vacuum analyze")
    costs = await measured(home, connection)
    await connection.close()
    await home.close()
    return costs


def shown(value: Cost) -> str:
    if value.pages is None:
        return f"- | more than {value.p50:,.0f} | -"
    return f"{value.pages:,.0f} | {value.p50:.1f} | {value.p95:.1f}"


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--archived", type=int, default=10_000_000)
    parser.add_argument(
        "--database", help="the address of one that is filled already, with pg_stat_statements"
    )
    options = parser.parse_args()
    server = await asyncio.to_thread(
        Postgres, **{"shared_preload_libraries": "pg_stat_statements", "pg_stat_statements.track": "all"}
    )
    try:
        small = await filled(server, SMALL)
        if options.database:
            home = Database(Settings(database_url=SecretStr(options.database)), role="bench")
            full = await measured(home, await asyncpg.connect(options.database))
            await home.close()
        else:
            full = await filled(server, options.archived)
    finally:
        await asyncio.to_thread(server.close)
    print(
        f"| list | pages, {SMALL:,} finished | p50 ms | p95 | full: pages | p50 ms | p95 |\n|---|---|---|---|---|---|---|"
    )
    for name in LISTS:
        print(f"| {name} | {shown(small[name])} | {shown(full[name])} |")


if __name__ == "__main__":
    asyncio.run(main())
