"""The cost of sleeping durable functions, and their delay when many wake at once.

    python -m bench.asleep                                   # 100,000 asleep, 10,000 of them wake within a second: some minutes
    python -m bench.asleep --asleep 5000 --waking 1000

Memory of every process, pages that PostgreSQL reads while nothing happens, and what 1,000 no-ops cost: with nobody asleep, and
with all of them.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from dataclasses import dataclass

from bench import meters, systems
from bench.figures import percentile
from bench.servers import started
from bench.session import Session, Stalled, opened
from bench.works.throughput import run

ASLEEP = "select count(*) from suspended"
PAGES = "select blks_hit + blks_read from pg_stat_database where datname = current_database()"
STILL = 20.0
"""Seconds in which nothing happens."""
SETTLED = 12.0
"""Seconds until the sessions of services have handed in what they counted, and what follows from work is done."""
NOOPS = 2000
A_SECOND = 200
"""So many fall asleep in a second, at least."""


@dataclass(frozen=True)
class Look:
    """The measures at one moment: MiB, idle pages of 8 KiB a second, and CPU seconds and pages per 1,000 no-ops."""

    worker: float
    executor: float
    postgres: float
    still: float
    cpu: float
    pages: float


async def look(session: Session) -> Look:
    await asyncio.sleep(SETTLED)
    sizes = {group: sum(process_sizes) for group, process_sizes in meters.memory(session.groups).items()}
    pages_before, began = await pages(session), time.monotonic()
    await asyncio.sleep(STILL)
    still = (await pages(session) - pages_before) / (time.monotonic() - began)
    pages_before = await pages(session)
    _, measured = await run(session, "send_many", NOOPS)
    await asyncio.sleep(SETTLED)
    worked = await pages(session) - pages_before - still * SETTLED
    [cpu, _] = measured["cpu_per_1000_total"]
    return Look(sizes["worker"], sizes["executor"], sizes["postgres"], still, cpu, 1000 * worked / NOOPS)


async def pages(session: Session) -> int:
    return int(await session.records.fetchval(PAGES))


async def fall_asleep(session: Session, count: int, since: float, seconds: float) -> int:
    """Start so many, and wait until they are asleep. Gives the index of the first."""
    already, first = await session.records.fetchval(ASLEEP), session.take(count)
    for begin in range(0, count, 10_000):
        some = min(10_000, count - begin)
        await session.order(
            "doze",
            first=first + begin,
            count=some,
            since=since + seconds * begin / count,
            seconds=seconds * some / count,
        )
    deadline = time.monotonic() + 60 + count / A_SECOND
    while (asleep := await session.records.fetchval(ASLEEP) - already) < count:
        session.check()
        if time.monotonic() > deadline:
            raise session.stalled(f"{asleep} of {count} fell asleep")
        await asyncio.sleep(0.5)
    return first


async def wake(session: Session, count: int) -> list[float]:
    """Return the seconds from the due instant of each function until it continued, when `count` are due within a second."""
    since = time.time() + 20 + count / A_SECOND
    first = await fall_asleep(session, count, since, 1.0)
    if time.time() > since:
        raise Stalled(f"{count} did not fall asleep before they were due")
    await asyncio.sleep(since - time.time())
    end_times = await session.ended(first, count)
    return [at - (since + n / count) for n, at in enumerate(end_times)]


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--asleep", type=int, default=100_000)
    parser.add_argument("--waking", type=int, default=10_000)
    parser.add_argument("--transport", choices=["rabbitmq", "postgres"], default="rabbitmq")
    options = parser.parse_args()
    system = systems.System("penstock", options.transport, peer=False)
    async with started(broker=system.broker) as servers, opened(system, servers) as session:
        await run(session, "send_many", NOOPS)  # code and plans are warm
        looks = {0: await look(session)}
        began = time.monotonic()
        await fall_asleep(session, options.asleep, time.time() + 86_400, 0.0)
        seconds = time.monotonic() - began
        looks[options.asleep] = await look(session)
        late = await wake(session, options.waking)
    print("asleep    worker MiB  executor MiB  postgres MiB  pages/s idle  CPU-s/1,000  pages/1,000")
    for count, it in looks.items():
        print(
            f"{count:>7,}{it.worker:>13.0f}{it.executor:>14.0f}{it.postgres:>14.0f}{it.still:>14.0f}{it.cpu:>13.3f}{it.pages:>13,.0f}"
        )
    print(f"{options.asleep:,} fell asleep in {seconds:.0f} s")
    p50, p99, longest = (percentile(late, share) for share in (0.5, 0.99, 1))
    print(f"{options.waking:,} woke within a second: late p50 {p50:.2f} s, p99 {p99:.2f}, most {longest:.2f}")


if __name__ == "__main__":
    asyncio.run(main())
