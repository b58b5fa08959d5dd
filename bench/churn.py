"""A comparison of the cost of work on a full database, beside a transaction that reads for minutes, with that on an empty one.

    python -m bench.churn                # 5 million archived executions, 20 million moves, 1 million of churn: ten minutes
    python -m bench.churn --scale 0.2 --count 100000

An executor and a worker run no-ops, on a database that is empty and on one that was filled with years of them. Measured for
1,000: pages touched, bytes of write-ahead log, CPU seconds; and how large what should stay small becomes, how long a page of
executions takes, and how long it takes to drop a day.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import statistics
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import asyncpg
from pydantic import SecretStr

from bench import meters
from bench.full_database import drop_a_day, fill, reading
from bench.marks import VARIABLE, Marks
from bench.servers import Servers, started
from bench.systems import command
from bench.workloads import noop
from penstock import Client, Definitions, Settings
from penstock.operate.apply import apply
from penstock.store.executions import execution_list
from penstock.store.schema import migrate
from penstock.store.session.database import Database
from tests.servers import reaper

DATABASE = "churn"
OPEN = 5_000
"""Executions that are under way at the most."""
LOOK_EVERY = 10.0
"""Seconds. Looking reads what is dead as well."""
HANDED_IN = 11.0
"""Seconds until idle sessions have handed in their counts."""
SMALL = ("outbox", "live", "claim", "timer")
WATCHED = "select {} ".format(", ".join(f"(select count(*) from {table}) as {table}" for table in SMALL))
SIZES = "select {} ".format(", ".join(f"pg_total_relation_size('{table}') as {table}" for table in SMALL))
BUFFERS = "select blks_hit + blks_read from pg_stat_database where datname = current_database()"


@dataclass
class Phase:
    """The results of churn on one database."""

    count: int
    seconds: float
    buffers: int
    cost: meters.Cost
    most: dict[str, int]
    sizes: dict[str, int]
    pages: list[float] = field(default_factory=list)

    def per_1000(self) -> dict[str, float]:
        assert self.cost.wal is not None
        thousands = self.count / 1000
        return {
            "buffers": self.buffers / thousands,
            "wal_bytes": self.cost.wal / thousands,
            "cpu_total_s": sum(self.cost.cpu.values()) / thousands,
            **{f"cpu_{name}_s": used / thousands for name, used in self.cost.cpu.items()},
        }


@contextmanager
def running(environment: dict[str, str], log: str) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """Run an executor and a worker. Yields their processes by group."""
    commands = {
        "executor": command("penstock", "executor"),
        "worker": command("penstock", "worker", "--module", "bench/workloads.py", "--concurrency", "200"),
    }
    with open(log, "ab") as output:
        processes = {
            name: subprocess.Popen(words, env=environment, stdout=output, stderr=output)
            for name, words in commands.items()
        }
    for process in processes.values():
        reaper.watch_process(process.pid)
    try:
        yield processes
    finally:
        for process in processes.values():
            process.send_signal(signal.SIGTERM)
        for process in processes.values():
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


async def churn(
    client: Client, board: Marks, processes: dict[str, subprocess.Popen[bytes]], first: int, count: int
) -> list[float]:
    """Start `count` no-ops, a hundred a call, with a bounded number under way, and wait until the last has run. Returns what
    pages took. How far they are is read off the marks: to count rows would cost more than the work, beside a reader."""
    pages: list[float] = []
    done, end = first, first + count
    for chunk_first in range(first, end, 1000):
        submitted = min(chunk_first + 1000, end)
        await asyncio.gather(
            *(
                client.start_many("bench.noop", [{"index": n} for n in range(start, min(start + 100, end))])
                for start in range(chunk_first, submitted, 100)
            )
        )
        while True:
            waiting = board.ended(done, submitted - done)
            done += next((n for n, at in enumerate(waiting) if not at), len(waiting))
            if submitted - done < OPEN and (submitted < end or done == end):
                break
            if gone := [name for name, process in processes.items() if process.poll() is not None]:
                raise RuntimeError(f"{', '.join(gone)} ended; its log says why")
            await asyncio.sleep(0.02)
        if (chunk_first - first) % 5000 == 0:
            began = time.perf_counter()
            await execution_list.page(client.session)
            pages.append(time.perf_counter() - began)
    return pages


async def look(watch: asyncpg.Connection, peaks: dict[str, int]) -> None:
    """Count the rows of the small tables now and then, for ever."""
    while True:
        [counts] = await watch.fetch(WATCHED)
        for table in SMALL:
            peaks[table] = max(peaks.get(table, 0), counts[table])
        await asyncio.sleep(LOOK_EVERY)


async def measured(
    servers: Servers, settings: Settings, environment: dict[str, str], count: int, warm: int
) -> Phase:
    """One phase: processes up, warmed, churned, settled."""
    url = servers.postgres.url(DATABASE)
    meter, watch = await asyncpg.connect(servers.postgres.url()), await asyncpg.connect(url)
    file = servers.memory / "marks"
    board = Marks(file, create=True)
    with running({**environment, VARIABLE: str(file)}, str(servers.folder / "churn.log")) as processes:
        async with Client.connect(settings) as client:
            groups = {name: [process.pid] for name, process in processes.items()}
            everything = {**groups, "postgres": [servers.postgres.pid], "client": [os.getpid()]}
            if servers.rabbitmq is not None:
                everything["rabbitmq"] = [servers.rabbitmq.pid]
            await churn(client, board, processes, 0, warm)
            await asyncio.sleep(HANDED_IN)
            reading, buffers, began = (
                await meters.read(everything, meter),
                await watch.fetchval(BUFFERS),
                time.monotonic(),
            )
            peaks: dict[str, int] = {}
            looking = asyncio.create_task(look(await asyncpg.connect(url), peaks))
            pages = await churn(client, board, processes, warm, count)
            seconds = time.monotonic() - began
            looking.cancel()
            await asyncio.sleep(HANDED_IN)
            cost = meters.between(reading, await meters.read(everything, meter))
            touched = await watch.fetchval(BUFFERS) - buffers
            [sizes] = await watch.fetch(SIZES)
    await meter.close()
    await watch.close()
    return Phase(count, seconds, touched, cost, peaks, dict(sizes), pages)


async def anew(servers: Servers, settings: Settings) -> None:
    await servers.postgres.execute(
        f"drop database if exists {DATABASE} with (force)", f"create database {DATABASE}"
    )
    await migrate.upgrade(settings)
    database = Database(settings, role="bench")
    await apply(database.session(), Definitions([noop]).documents())
    await database.close()


def show(empty: Phase, full: Phase, dropped: dict[str, float]) -> None:
    print(f"\n{'for 1,000 executions':24} {'empty':>12} {'full':>12} {'full/empty':>11}")
    empty_costs, full_costs = empty.per_1000(), full.per_1000()
    for name, value in empty_costs.items():
        ratio = f"{full_costs[name] / value:11.3f}" if value else ""
        print(f"{name:24} {value:12,.3f} {full_costs[name]:12,.3f} {ratio}")
    for phase, label in ((empty, "empty"), (full, "full, beside the reader")):
        rows = ", ".join(f"{table} {count:,}" for table, count in phase.most.items())
        sizes = ", ".join(f"{table} {size / 2**20:.1f} MB" for table, size in phase.sizes.items())
        slow = sorted(phase.pages)
        print(
            f"{label}: {phase.count / phase.seconds:,.0f} executions/s; most rows: {rows}; at the end: {sizes}"
        )
        print(
            f"    a page of executions: median {statistics.median(slow) * 1000:.1f} ms, most {slow[-1] * 1000:.1f} ms; "
            f"foreign load {phase.cost.foreign:.2f}"
        )
    print(f"dropping a day: {', '.join(f'{parent} {seconds:.3f} s' for parent, seconds in dropped.items())}")


async def measure(servers: Servers, options: argparse.Namespace) -> None:
    url = servers.postgres.url(DATABASE)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")},
        "PENSTOCK_LOG_LEVEL": "warning",
        "PENSTOCK_DATABASE_URL": url,
        "PENSTOCK_ARCHIVE_AFTER": "5",
    }
    broker = servers.rabbitmq.add_vhost(DATABASE) if servers.rabbitmq is not None else None
    if broker:
        environment["PENSTOCK_BROKER_URL"] = broker
    settings = Settings(database_url=SecretStr(url), broker_url=SecretStr(broker) if broker else None)
    warm = min(5_000, options.count)
    await anew(servers, settings)
    empty = await measured(servers, settings, environment, options.count, warm)
    print(f"empty: {empty.count:,} executions in {empty.seconds:.0f} s", flush=True)
    await anew(servers, settings)
    await fill(url, int(5_000_000 * options.scale))
    async with reading(url):
        full = await measured(servers, settings, environment, options.count, warm)
    show(empty, full, await drop_a_day(url))


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--scale", type=float, default=1.0, help="of 5 million executions and 20 million moves"
    )
    parser.add_argument("--count", type=int, default=1_000_000, help="executions of churn, twice")
    parser.add_argument("--transport", choices=("rabbitmq", "postgres"), default="rabbitmq")
    options = parser.parse_args()
    async with started(broker=options.transport == "rabbitmq") as servers:
        await measure(servers, options)


if __name__ == "__main__":
    asyncio.run(main())
