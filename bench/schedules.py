"""Ten thousand schedules: whether each fire gets exactly one execution, how late, and what they cost while idle.

Three executors and a worker; every ten seconds one executor is killed and another one started.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import asyncpg
from pydantic import SecretStr

from bench.meters import transactions
from bench.servers import Servers
from bench.systems import command
from bench.ticking import tick
from penstock import Definitions, Schedule, Settings
from penstock.operate.apply import apply
from penstock.store.schema import migrate
from penstock.store.session.database import Database
from tests.servers import reaper

DATABASE = "schedules"
REPLICAS = 3
KILL_EVERY = 10.0
INTO_BURST = 0.5
"""Seconds after the minute."""
STARTED = 12.0
"""Seconds that the processes get to start."""
SETTLED = 15.0
"""Seconds that everything gets after the last minute; also until idle sessions hand in their counts."""

FIRES = """
select count(*) as fires, count(p.execution_id) as executions, count(distinct p.execution_id) as different,
    percentile_cont(array[0.5, 0.99, 1]) within group (
        order by extract(epoch from pg_xact_commit_timestamp(p.xmin) - f.due_at)) as lags,
    count(*) filter (where f.outcome = 'completed') as completed, count(distinct made_by) as replicas
from fire f left join payload p on p.execution_id = f.execution_id
where f.due_at >= to_timestamp($1) and f.due_at < to_timestamp($2)
"""
WRONG = """
select (select count(*) from payload where origin ? 'schedule')
        - (select count(*) from fire where execution_id is not null) as surplus,
    (select count(*) from (
        select schedule, date_trunc('minute', due_at) from fire
        where due_at >= to_timestamp($1) and due_at < to_timestamp($2) group by 1, 2 having count(*) > 1) x) as doubled
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
            process = subprocess.Popen(
                command("penstock", *arguments),
                env={**self.environment, "PENSTOCK_NAME": name},
                stdout=log,
                stderr=log,
            )
        reaper.watch_process(process.pid)
        return process

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


@dataclass(frozen=True)
class Fired:
    """The outcomes of the fires of one minute, or of all minutes. Lags are the seconds from the due instant to the commit."""

    fires: int
    executions: int
    different: int
    completed: int
    replicas: int
    lags: tuple[float, float, float]
    """Median, 99th percentile, most."""


@dataclass(frozen=True)
class Outcome:
    applying: float
    """Seconds."""
    minutes: list[Fired]
    whole: Fired
    wrong: int
    """Fires without an execution, executions without a fire, and minutes that a schedule fired twice in."""
    kills: int
    load: float
    """Of the machine, over the last minute."""


def schedules(count: int, *, daily: bool = False) -> list[Schedule]:
    """Return schedules that fire every minute, or `daily` ones that do not fire within the next hours."""
    hour = datetime.now(UTC).hour

    def cron(n: int) -> str:
        return f"{n % 60} {(hour + 3 + n % 18) % 24} * * *" if daily else "* * * * *"

    return [Schedule(f"ticking.s{n}", action=tick, params={"number": n}, cron=cron(n)) for n in range(count)]


@dataclass
class Place:
    """A fresh database, with a virtual host if there is a broker, and the schedules in it."""

    connection: asyncpg.Connection
    replicas: Replicas
    applying: float


@asynccontextmanager
async def place(servers: Servers, declared: Sequence[Schedule], *, broker: bool) -> AsyncIterator[Place]:
    await servers.postgres.execute(
        f"drop database if exists {DATABASE} with (force)", f"create database {DATABASE}"
    )
    url = servers.postgres.url(DATABASE)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")},
        "PENSTOCK_LOG_LEVEL": "warning",
        "PENSTOCK_DATABASE_URL": url,
    }
    carrier = servers.rabbitmq if broker else None
    if carrier is not None:
        environment["PENSTOCK_BROKER_URL"] = await asyncio.to_thread(carrier.add_vhost, DATABASE)
    connection = await asyncpg.connect(url)
    try:
        applying = await _set_up(Settings(database_url=SecretStr(url)), declared)
        yield Place(connection, Replicas(environment, servers.folder / "schedules.log"), applying)
    finally:
        await connection.close()
        if carrier is not None:
            await asyncio.to_thread(carrier.drop_vhost, DATABASE)


async def _set_up(settings: Settings, declared: Sequence[Schedule]) -> float:
    """Returns the seconds that applying took."""
    await migrate.upgrade(settings)
    database = Database(settings, role="bench")
    documents = Definitions([tick, *declared]).documents()
    began = time.monotonic()
    await apply(database.session(), documents)
    seconds = time.monotonic() - began
    await database.close()
    return seconds


async def firing(servers: Servers, *, broker: bool, count: int, minutes: int) -> Outcome:
    """Let schedules fire for `minutes` whole minutes, and kill and start executors meanwhile."""
    async with place(servers, schedules(count), broker=broker) as installation:
        with installation.replicas.running(worker=True):
            await asyncio.sleep(STARTED)
            now = await installation.connection.fetchval(
                "select extract(epoch from clock_timestamp())::float8"
            )
            first = (now // 60 + 1) * 60
            await _killing(installation.replicas, time.monotonic() + first - now, minutes)
            await asyncio.sleep(SETTLED)
        spans = [(first + 60 * n, first + 60 * (n + 1) - 0.5) for n in range(minutes)]
        fired = [await _fired(installation.connection, *span) for span in spans]
        whole = await _fired(installation.connection, first, spans[-1][1])
        [wrong] = await installation.connection.fetch(WRONG, first, spans[-1][1])
    return Outcome(
        installation.applying,
        fired,
        whole,
        abs(wrong["surplus"]) + wrong["doubled"] + whole.fires - whole.different,
        installation.replicas.kills,
        os.getloadavg()[0],
    )


async def _killing(replicas: Replicas, start: float, minutes: int) -> None:
    """Timed so that one kill falls into the burst of every minute."""
    end = start + 60 * minutes - 1
    kills = (start + INTO_BURST + KILL_EVERY * n for n in itertools.count(-6))
    turns = (at for at in itertools.takewhile(lambda at: at < end, kills) if at > time.monotonic())
    for turn, at in enumerate(turns):
        await asyncio.sleep(at - time.monotonic())
        replicas.replace(turn)
    await asyncio.sleep(max(0.0, end - time.monotonic()))


async def _fired(connection: asyncpg.Connection, since: float, until: float) -> Fired:
    [row] = await connection.fetch(FIRES, since, until)
    lags = tuple(row["lags"] or (0.0, 0.0, 0.0))
    return Fired(row["fires"], row["executions"], row["different"], row["completed"], row["replicas"], lags)


async def idle(servers: Servers, *, broker: bool, count: int, seconds: float) -> float:
    """Transactions a second of three executors while `count` daily schedules wait for their hour."""
    async with place(servers, schedules(count, daily=True), broker=broker) as installation:
        outside = await asyncpg.connect(servers.postgres.url())
        with installation.replicas.running(worker=False):
            await asyncio.sleep(STARTED + SETTLED)
            count_before, began = await transactions(DATABASE, outside), time.monotonic()
            await asyncio.sleep(seconds)
            rate = (await transactions(DATABASE, outside) - count_before) / (time.monotonic() - began)
        await outside.close()
        return rate
