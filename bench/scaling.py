"""A fixed amount of work on a growing number of executors and workers of one machine: the gain of each, and their contention.

    python -m bench.scaling                              # 2, 4, 8 and 16 of each: six minutes
    python -m bench.scaling --of-each 2 4 --count 5000   # a short form of it

Beside the rate, which depends on who else uses the machine: CPU seconds per 1,000, PostgreSQL's connections, how often a
backend that was looked at waited for a lock of another one, deadlocks, and transactions that were rolled back.
"""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from statistics import median_low

import asyncpg

from bench import meters
from bench.replicas import PATIENCE, Fleet, installation
from penstock import Client, action

BATCH = 500
"""Executions that are started together."""
ROOM = "250"
"""Connections: of the 100 that PostgreSQL allows if nobody says otherwise 16 executors and 16 workers have two or three each."""
LOOK = 0.1
"""Seconds between two looks at what backends do."""
OPEN = "select count(*)::integer as count from execution where finished_at is null"
BACKENDS = """
select coalesce(wait_event_type, 'CPU') as type, coalesce(wait_event, 'running') as event, state, count(*)::integer as count
from pg_stat_activity where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()
group by 1, 2, 3
"""
TROUBLE = """
select deadlocks::integer as deadlocks, xact_rollback::integer as rollbacks
from pg_stat_database where datname = current_database()
"""


@action(pack="scaling")
async def noop(index: int) -> int:
    return index


@dataclass
class Seen:
    """The findings of the looks at the backends."""

    looks: int = 0
    connections: int = 0
    """The most at once."""
    busy: Counter[str] = field(default_factory=Counter)
    """Backends in a statement, by what they waited for."""

    def share(self, kind: str) -> float:
        """Return the share of backends in a statement that waited for this kind of event."""
        matching = sum(count for name, count in self.busy.items() if name.startswith(f"{kind}:"))
        return matching / max(1, self.busy.total())

    async def watch(self, connection: asyncpg.Connection) -> None:
        while True:
            rows = await connection.fetch(BACKENDS)
            self.looks += 1
            self.connections = max(self.connections, sum(row["count"] for row in rows))
            for row in rows:
                if row["state"] == "active":
                    self.busy[f"{row['type']}:{row['event']}"] += row["count"]
            await asyncio.sleep(LOOK)


@dataclass(frozen=True)
class Figures:
    """The figures of one size. CPU is in seconds per 1,000 executions."""

    of_each: int
    rate: float
    cpu: dict[str, float]
    foreign: float
    deadlocks: int
    rollbacks: int
    seen: Seen


async def run(client: Client, count: int) -> None:
    """Start so many, and wait until none is open."""
    for first in range(0, count, BATCH):
        await client.start_many("scaling.noop", [{"index": n} for n in range(first, first + BATCH)])
    async with asyncio.timeout(PATIENCE + count / 100):
        while (await client.session.fetch(OPEN))[0]["count"]:
            await asyncio.sleep(0.05)


@asynccontextmanager
async def watched(url: str) -> AsyncIterator[Seen]:
    """Watch the backends inside the block."""
    observed, connection = Seen(), await asyncpg.connect(url)
    looking = asyncio.create_task(observed.watch(connection))
    try:
        yield observed
    finally:
        looking.cancel()
        await asyncio.wait([looking])
        await connection.close()


async def measured(client: Client, fleet: Fleet, of_each: int, count: int) -> Figures:
    await fleet.all_there(client)
    await run(client, BATCH * 4)  # plans are made, and each worker has had some
    url = fleet.environment["PENSTOCK_DATABASE_URL"]
    groups = {
        **{role: [fleet.alive[name].pid for name in fleet.of(role)] for role in ("executor", "worker")},
        **{name: [pid] for name, pid in fleet.servers.items()},
    }
    connection = await asyncpg.connect(url)
    trouble = (await connection.fetch(TROUBLE))[0]
    async with watched(url) as observed:
        reading = await meters.read(groups, connection)
        await run(client, count)
        cost = meters.between(reading, await meters.read(groups, connection))
    await asyncio.sleep(1.1)  # until sessions have handed in their counters
    later_trouble = (await connection.fetch(TROUBLE))[0]
    await connection.close()
    return Figures(
        of_each,
        count / cost.seconds,
        {name: 1000 * spent / count for name, spent in cost.cpu.items()},
        cost.foreign,
        later_trouble["deadlocks"] - trouble["deadlocks"],
        later_trouble["rollbacks"] - trouble["rollbacks"],
        observed,
    )


async def size(of_each: int, count: int, rounds: int) -> Figures:
    """Return the figures of the middle round."""
    async with installation("bench/scaling.py", [noop], of_each, max_connections=ROOM) as (client, fleet):
        return middle([await measured(client, fleet, of_each, count) for _ in range(rounds)])


def middle(candidates: Sequence[Figures]) -> Figures:
    """Return the figures with the median rate."""
    rate = median_low([figures.rate for figures in candidates])
    return next(figures for figures in candidates if figures.rate == rate)


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--of-each", type=int, nargs="+", default=[2, 4, 8, 16])
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sweeps", type=int, default=3, help="times that all sizes have their turn")
    options = parser.parse_args()
    sizes: dict[int, list[Figures]] = {of_each: [] for of_each in options.of_each}
    for _ in range(options.sweeps):
        for of_each, figures in sizes.items():
            figures.append(await size(of_each, options.count, options.rounds))
            print(figures[-1], flush=True)
    results = [middle(figures) for figures in sizes.values()]
    best = max(result.rate for result in results)
    groups = ("executor", "worker", "postgres", "rabbitmq")
    print(
        f"| of each | 1/s | of the best | {' | '.join(groups)} | all | connections | waits for rows | for inner locks"
        " | deadlocks | rolled back | foreign load |\n|" + "---|" * 13
    )
    for result in results:
        cpu = " | ".join(
            f"{spent:.3f}" for spent in (*(result.cpu[name] for name in groups), sum(result.cpu.values()))
        )
        observed = result.seen
        print(
            f"| {result.of_each} | {result.rate:,.0f} | {result.rate / best:.0%} | {cpu} | {observed.connections}"
            f" | {observed.share('Lock'):.1%} | {observed.share('LWLock'):.1%} | {result.deadlocks} | {result.rollbacks}"
            f" | {result.foreign:.2f} |"
        )
    for result in results:
        print(
            f"{result.of_each} of each: {dict(result.seen.busy.most_common(6))} in {result.seen.looks} looks"
        )


if __name__ == "__main__":
    asyncio.run(main())
