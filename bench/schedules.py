"""Ten thousand schedules: whether each fire gets exactly one execution, how late, and what they cost while idle.

    python -m bench.schedules --minutes 3 --transport rabbitmq

Three executors and a worker. Every 10 seconds one executor is killed and started again. With --varied each schedule
has an expression and a zone of its own kind, otherwise all fire with `* * * * *`.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import asyncpg
from pydantic import SecretStr

from bench.meters import transactions
from bench.servers import Servers, started
from bench.systems import command
from bench.ticking import tick
from penstock import Definitions, Schedule, migrate
from penstock.apply import apply
from penstock.database import Database
from penstock.settings import Settings

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe")
DATABASE = "schedules"
REPLICAS = 3
KILL_EVERY = 10.0
INTO_BURST = 0.5
"""Seconds after the minute."""
SETTLED = 15.0
"""Seconds that everything gets after the last minute; also until idle sessions hand in their counts."""

LAG = """
select count(*) as fires, count(p.execution_id) as executions, count(distinct p.execution_id) as different,
    percentile_cont(array[0.5, 0.99, 1]) within group (
        order by extract(epoch from pg_xact_commit_timestamp(p.xmin) - f.due_at)) as lag,
    count(*) filter (where f.outcome = 'completed') as completed, count(distinct made_by) as replicas
from fire f left join payload p on p.execution_id = f.execution_id
where f.due_at >= $1 and f.due_at < $2
"""
WRONG = """
select (select count(*) from payload where origin ? 'schedule') - (select count(*) from fire where execution_id is not null)
    as surplus,
    (select count(*) from (select schedule, date_trunc('minute', due_at) from fire where due_at >= $1 and due_at < $2
        group by 1, 2 having count(*) > 1) x) as doubled
"""


@dataclass
class Replicas:
    """Executors and a worker, ended by their ids."""

    environment: dict[str, str]
    log: Path
    executors: list[subprocess.Popen[bytes]] = field(default_factory=list)
    kills: int = 0

    def start(self, *arguments: str, name: str) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                command("penstock", *arguments),
                env={**self.environment, "PENSTOCK_NAME": name},
                stdout=log,
                stderr=log,
            )

    def replace(self, turn: int) -> None:
        """Kill the executor whose turn it is, and start another."""
        victim = self.executors[turn % REPLICAS]
        victim.kill()
        victim.wait()
        self.kills += 1
        self.executors[turn % REPLICAS] = self.start("executor", name=f"executor-{turn}")

    @contextmanager
    def running(self, *, worker: bool) -> Iterator[None]:
        self.executors = [self.start("executor", name=f"first-{n}") for n in range(REPLICAS)]
        workers = []
        if worker:
            workers = [
                self.start("worker", "--module", "bench/ticking.py", "--concurrency", "500", name="worker")
            ]
        try:
            yield
        finally:
            for process in (*self.executors, *workers):
                process.send_signal(signal.SIGKILL)
                process.wait()


def schedules(count: int, *, varied: bool, daily: bool = False) -> list[Schedule]:
    hour = datetime.now(UTC).hour

    def when(n: int) -> dict[str, str]:
        if daily:
            return {"cron": f"{n % 60} {(hour + 3 + n % 18) % 24} * * *"}  # none within the next hours
        if varied:
            return {
                "cron": f"* {n % 24}-23,0-{n % 24} * {1 + n % 12}-12,1-{1 + n % 12} *",
                "timezone": ZONES[n % 5],
            }
        return {"cron": "* * * * *"}

    return [Schedule(f"ticking.s{n}", action=tick, params={"number": n}, **when(n)) for n in range(count)]


async def set_up(settings: Settings, declared: Sequence[Schedule]) -> float:
    """Returns the seconds that applying took."""
    await migrate.upgrade(settings)
    database = Database(settings, role="bench")
    documents = Definitions([tick, *declared]).documents()
    began = time.monotonic()
    await apply(database.session(), documents)
    took = time.monotonic() - began
    await database.close()
    return took


async def firing(connection: asyncpg.Connection, replicas: Replicas, minutes: int) -> None:
    """Kill and start again while `minutes` whole minutes pass; then say what came of them."""
    with replicas.running(worker=True):
        await asyncio.sleep(12)
        now = await connection.fetchval("select extract(epoch from clock_timestamp())::float8")
        first = (now // 60 + 1) * 60
        start = time.monotonic() + first - now
        end = start + 60 * minutes - 1
        # Timed so that one kill falls into the burst of every minute.
        kills = (start + INTO_BURST + KILL_EVERY * n for n in itertools.count(-6))
        turns = (at for at in itertools.takewhile(lambda at: at < end, kills) if at > time.monotonic())
        for turn, at in enumerate(turns):
            await asyncio.sleep(at - time.monotonic())
            replicas.replace(turn)
        await asyncio.sleep(max(0.0, end - time.monotonic()))
        await asyncio.sleep(SETTLED)
    for minute in (*range(minutes), None):
        since = first + 60 * (minute or 0)
        until = since + 60 * (minutes if minute is None else 1)
        row = await connection.fetchrow(
            LAG.replace("$1", "to_timestamp($1)").replace("$2", "to_timestamp($2)"), since, until - 0.5
        )
        lags = ", ".join(
            f"{what} {lag:.2f} s" for what, lag in zip(("p50", "p99", "max"), row["lag"] or (), strict=False)
        )
        print(
            f"{'all' if minute is None else f'minute {minute + 1}'}: {row['fires']} fires, {row['executions']} executions "
            f"({row['different']} different), {row['completed']} seen completed; lag {lags}; {row['replicas']} replicas"
        )
    print(
        f"load of the machine: {', '.join(f'{load:.1f}' for load in os.getloadavg())} over 1, 5 and 15 minutes"
    )
    wrong = await connection.fetchrow(
        WRONG.replace("$1", "to_timestamp($1)").replace("$2", "to_timestamp($2)"),
        first,
        first + 60 * minutes - 0.5,
    )
    print(
        f"{replicas.kills} kills; executions without a fire: {wrong['surplus']}; fires made twice: {wrong['doubled']}"
    )


async def idle(connection: asyncpg.Connection, replicas: Replicas, seconds: float) -> float:
    """Transactions a second of three executors that have nothing to do."""
    with replicas.running(worker=False):
        await asyncio.sleep(SETTLED)
        before, began = await transactions(DATABASE, connection), time.monotonic()
        await asyncio.sleep(seconds)
        return (await transactions(DATABASE, connection) - before) / (time.monotonic() - began)


async def measure(servers: Servers, options: argparse.Namespace) -> None:
    connection = await asyncpg.connect(servers.postgres.url())
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")},
        "PENSTOCK_LOG_LEVEL": "warning",
        "PENSTOCK_DATABASE_URL": servers.postgres.url(DATABASE),
    }
    if servers.rabbitmq is not None:
        environment["PENSTOCK_BROKER_URL"] = servers.rabbitmq.add_vhost(DATABASE)
    settings = Settings(database_url=SecretStr(servers.postgres.url(DATABASE)))
    log = servers.folder / "processes.log"

    async def anew() -> asyncpg.Connection:
        await connection.execute(f"drop database if exists {DATABASE} with (force)")
        await connection.execute(f"create database {DATABASE}")
        return await asyncpg.connect(servers.postgres.url(DATABASE))

    if options.minutes:
        there = await anew()
        took = await set_up(settings, schedules(options.schedules, varied=options.varied))
        print(f"{options.schedules} schedules applied in {took:.1f} s")
        await firing(there, Replicas(environment, log), options.minutes)
        await there.close()
    for count in (0, options.schedules) if options.idle else ():
        there = await anew()
        await set_up(settings, schedules(count, varied=False, daily=True))
        rate = await idle(there, Replicas(environment, log), options.idle)
        print(f"idle with {count} daily schedules and {REPLICAS} executors: {rate:.2f} transactions/s")
        await there.close()
    if log.stat().st_size:
        print(log.read_text()[-3000:])
    await connection.close()


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--schedules", type=int, default=10_000)
    parser.add_argument("--minutes", type=int, default=3)
    parser.add_argument("--idle", type=float, default=60.0, help="seconds to watch idle replicas")
    parser.add_argument("--transport", choices=("rabbitmq", "postgres"), default="rabbitmq")
    parser.add_argument("--varied", action="store_true")
    options = parser.parse_args()
    async with started(broker=options.transport == "rabbitmq") as servers:
        await measure(servers, options)


if __name__ == "__main__":
    asyncio.run(main())
