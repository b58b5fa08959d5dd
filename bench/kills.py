"""How long after a kill -9 the work runs again, at default settings, on an otherwise idle installation on RabbitMQ.

    python -m bench.kills               # 50 workers and 50 executors: a quarter of an hour
    python -m bench.kills --count 10 --only worker

A worker is killed while it runs one execution: measured is until that runs on another worker. An executor is killed while
executions are submitted, one each 20 ms: measured is, of those that were open then, until the last has completed.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import random
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from pydantic import SecretStr

from bench.servers import started
from bench.systems import command
from penstock import Client, action
from penstock.language.loading import Definitions
from penstock.operate.apply import register
from penstock.settings import Settings
from penstock.store import migrate
from tests.servers import reaper

DATABASE = "kills"
OF_EACH = 2
"""Executors, and workers."""
LOOK = 0.02
PATIENCE = 120.0
"""Seconds."""
HOLDER = """
select p.name from execution e join process p on p.id = e.claim where e.id = $1 and e.status = 'running'
"""
RUNNING = "select from execution where id = $1 and status = 'running' and attempt = $2"
LIVING = "select count(*)::integer as count from process where name = any($1::text[]) and state = 'active'"
OPEN = "select id from execution where finished_at is null"
LEFT = "select from execution where id = any($1::uuid[]) and finished_at is null"


@action(pack="kills")
async def hold() -> None:
    await asyncio.sleep(600)


@action(pack="kills")
async def moment() -> None:
    await asyncio.sleep(0.05)


@dataclass
class Fleet:
    """Executors and workers by name, ended by their ids."""

    environment: dict[str, str]
    log: Path
    alive: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def start(self, role: str) -> None:
        name = f"{role}-{next(self._numbers)}"
        arguments = ("--module", "bench/kills.py") if role == "worker" else ()
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                command("penstock", role, *arguments),
                env={**self.environment, "PENSTOCK_NAME": name},
                stdout=log,
                stderr=log,
            )
        reaper.watch_process(process.pid)
        self.alive[name] = process

    def kill(self, name: str) -> float:
        """Kill it, start another; returns when."""
        process = self.alive.pop(name)
        at = time.monotonic()
        process.kill()
        process.wait()
        self.start(name.split("-")[0])
        return at

    def of(self, role: str) -> list[str]:
        return [name for name in self.alive if name.startswith(role)]

    def close(self) -> None:
        for process in self.alive.values():
            process.kill()
            process.wait()


async def seconds_until(client: Client, at: float, sql: str, *args: object, gone: bool = False) -> float:
    """Seconds from then until a query gives rows, or gives none any more."""
    async with asyncio.timeout(PATIENCE):
        while bool(await client.session.fetch(sql, *args)) is gone:
            await asyncio.sleep(LOOK)
    return time.monotonic() - at


async def all_there(client: Client, fleet: Fleet) -> None:
    async with asyncio.timeout(PATIENCE):
        while (await client.session.fetch(LIVING, list(fleet.alive)))[0]["count"] < len(fleet.alive):
            await asyncio.sleep(LOOK)


async def worker_killed(client: Client, fleet: Fleet) -> float:
    id: UUID = await client.start("kills.hold")
    await seconds_until(client, 0.0, HOLDER, id)
    [[holder]] = await client.session.fetch(HOLDER, id)
    await asyncio.sleep(random.uniform(0, 1))
    took = await seconds_until(client, fleet.kill(holder), RUNNING, id, 2)
    await client.cancel(id)
    return took


async def executor_killed(client: Client, fleet: Fleet) -> float:
    stop = asyncio.Event()

    async def submit() -> None:
        while not stop.is_set():
            await client.start("kills.moment")
            await asyncio.sleep(0.02)

    load = asyncio.create_task(submit())
    await asyncio.sleep(1 + random.uniform(0, 1))
    at = fleet.kill(random.choice(fleet.of("executor")))
    open_ = [row["id"] for row in await client.session.fetch(OPEN)]
    await asyncio.sleep(0.5)
    stop.set()
    await load
    return await seconds_until(client, at, LEFT, open_, gone=True)


async def measure(count: int, only: str | None) -> None:
    async with started(broker=True) as servers:
        assert servers.rabbitmq is not None
        await servers.postgres.execute(f"create database {DATABASE}")
        database, broker = servers.postgres.url(DATABASE), servers.rabbitmq.add_vhost(DATABASE)
        settings = Settings(database_url=SecretStr(database), broker_url=SecretStr(broker))
        await migrate.upgrade(settings)
        outside = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
        given = {
            "PENSTOCK_DATABASE_URL": database,
            "PENSTOCK_BROKER_URL": broker,
            "PENSTOCK_LOG_LEVEL": "warning",
        }
        fleet = Fleet({**outside, **given}, servers.folder / "services.log")
        try:
            async with Client.connect(settings) as client:
                await register(client.session, Definitions([hold, moment]))
                for role in ("executor", "worker") * OF_EACH:
                    fleet.start(role)
                for what, kill in (("worker", worker_killed), ("executor", executor_killed)):
                    if only not in (None, what):
                        continue
                    took = []
                    for _ in range(count):
                        await all_there(client, fleet)
                        took.append(await kill(client, fleet))
                    print(line(what, took), flush=True)
        finally:
            fleet.close()


def line(what: str, took: Sequence[float]) -> str:
    took = sorted(took)
    p50, p99 = (took[min(len(took) - 1, int(part * len(took)))] for part in (0.5, 0.99))
    return f"{what:9} {len(took)} kills: p50 {p50:.1f} s, p99 {p99:.1f} s, least {took[0]:.1f}, most {took[-1]:.1f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="kill -9, and how long until the work runs again")
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--only", choices=["worker", "executor"])
    given = parser.parse_args()
    asyncio.run(measure(given.count, given.only))
