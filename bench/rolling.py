"""Every executor and worker is replaced, one after the other, while work is submitted at a steady rate.

    python -m bench.rolling                        # 500 a second for five minutes
    python -m bench.rolling --upgrade              # first to a next release, and back by one in the second half
    python -m bench.rolling --rate 100 --seconds 30

At default settings on RabbitMQ: another replica is started, and once it is registered, one leaves (SIGTERM), as a deployment
does that may surge by one. Then everything has to be there, done once, and no invariant violated.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from bench.replicas import PATIENCE, Fleet, installation, role_of
from penstock import Client, action
from penstock.operate.check import check
from penstock.store.schema import migrate as schema
from tests.upgrade.releases import migrate, next_release

OF_EACH = 2
"""Executors, and workers."""
TICKS = 10
"""A second's work is submitted in so many parts."""
STATUSES = "select status, count(*)::integer as count from execution group by status order by status"
AGAIN = "select count(*)::integer as count from execution where attempt > 1"
OPEN = "select from execution where finished_at is null limit 1"
TO_START = """
select percentile_cont(array[0.5, 0.99, 1]) within group (order by extract(epoch from r.at - s.at))::float8[] as seconds
from history s join history r on r.execution_id = s.execution_id and r.new = 'running' where s.new = 'scheduled'
"""


@action(pack="rolling")
async def moment() -> None:
    await asyncio.sleep(0.02)


@dataclass
class Load:
    """Starts `rate` a second, for so long."""

    client: Client
    rate: int
    submitted: int = 0
    behind: float = 0.0
    """Seconds by which it fell behind, at the most."""

    async def run(self, seconds: float) -> None:
        began = time.monotonic()
        for tick in range(int(seconds * TICKS)):
            due = began + tick / TICKS
            self.behind = max(self.behind, time.monotonic() - due)
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            count = self.rate // TICKS
            await asyncio.gather(*(self.client.start("rolling.moment") for _ in range(count)))
            self.submitted += count


async def replace(client: Client, fleet: Fleet, name: str) -> None:
    fleet.start(role_of(name))
    await fleet.all_there(client)
    await fleet.leave(name)


async def rolling(client: Client, fleet: Fleet, until: float) -> int:
    """Replace all of them, again and again. Gives how many were."""
    replaced = 0
    while time.monotonic() < until:
        for name in list(fleet.alive):
            await replace(client, fleet, name)
            replaced += 1
    return replaced


async def upgraded(client: Client, fleet: Fleet, folder: Path, seconds: float) -> int:
    """Upgrade the schema first, then one replica after another to the next release. In the second half, go back by one."""
    began = time.monotonic()
    fleet.release = next_release(folder / "next", schema.newest())
    await asyncio.to_thread(migrate, fleet.release, fleet.environment)
    replaced = await rolling(client, fleet, began + seconds / 2)
    fleet.release = None
    return replaced + await rolling(client, fleet, began + seconds)


async def settled(client: Client) -> None:
    async with asyncio.timeout(PATIENCE):
        while await client.session.fetch(OPEN):
            await asyncio.sleep(0.2)


async def measure(rate: int, seconds: float, upgrade: bool) -> bool:
    """Return whether nothing was lost, failed or violated."""
    async with installation("bench/rolling.py", [moment], OF_EACH) as (client, fleet):
        await fleet.all_there(client)
        load = Load(client, rate)
        running = asyncio.create_task(load.run(seconds))
        with tempfile.TemporaryDirectory() as folder:
            if upgrade:
                replaced = await upgraded(client, fleet, Path(folder), seconds)
            else:
                replaced = await rolling(client, fleet, time.monotonic() + seconds)
            await running
            await settled(client)
        statuses = Counter({row["status"]: row["count"] for row in await client.session.fetch(STATUSES)})
        [[again]] = await client.session.fetch(AGAIN)
        [[(p50, p99, longest)]] = await client.session.fetch(TO_START)
        violated = {
            invariant.name: len(invariant.violations)
            for invariant in await check(client.session)
            if invariant.violations
        }
    lost_count = load.submitted - statuses.total()
    print(
        f"{replaced} replicas replaced while {load.submitted:,} were started; at most {load.behind:.1f} s late"
    )
    print(
        f"ended as {dict(statuses)}; lost {lost_count}; begun again {again}; invariants violated: {violated or 'none'}"
    )
    print(
        f"from scheduled to running: p50 {1000 * p50:.1f} ms, p99 {1000 * p99:.0f} ms, most {longest:.1f} s"
    )
    return not lost_count and set(statuses) == {"completed"} and not again and not violated


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rate", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--upgrade", action="store_true")
    given = parser.parse_args()
    sys.exit(not asyncio.run(measure(given.rate, given.seconds, given.upgrade)))
