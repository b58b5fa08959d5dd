"""The time from a kill -9 until the work runs again, at default settings, on an otherwise idle installation on RabbitMQ.

    python -m bench.kills               # 50 workers and 50 executors: a quarter of an hour
    python -m bench.kills --count 10 --only worker

A worker is killed while it runs one execution. The time ends when the execution runs on another worker. An executor is
killed while executions are submitted, one each 20 ms. The time ends when the last execution that was open then completes.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections.abc import Sequence
from uuid import UUID

from bench.replicas import LOOK, PATIENCE, Fleet, installation
from penstock import Client, action

OF_EACH = 2
"""Executors, and workers."""
HOLDER = """
select p.name from execution e join process p on p.id = e.claim where e.id = $1 and e.status = 'running'
"""
RUNNING = "select from execution where id = $1 and status = 'running' and attempt = $2"
OPEN = "select id from execution where finished_at is null"
LEFT = "select from execution where id = any($1::uuid[]) and finished_at is null"


@action(pack="kills")
async def hold() -> None:
    await asyncio.sleep(600)


@action(pack="kills")
async def moment() -> None:
    await asyncio.sleep(0.05)


async def seconds_until(client: Client, at: float, sql: str, *args: object, gone: bool = False) -> float:
    """Return the seconds until a query gives rows, or gives none any more."""
    async with asyncio.timeout(PATIENCE):
        while bool(await client.session.fetch(sql, *args)) is gone:
            await asyncio.sleep(LOOK)
    return time.monotonic() - at


async def worker_killed(client: Client, fleet: Fleet) -> float:
    id: UUID = await client.start("kills.hold")
    await seconds_until(client, 0.0, HOLDER, id)
    [[holder]] = await client.session.fetch(HOLDER, id)
    await asyncio.sleep(random.uniform(0, 1))
    at = time.monotonic()
    fleet.kill(holder)
    seconds = await seconds_until(client, at, RUNNING, id, 2)
    await client.cancel(id)
    return seconds


async def executor_killed(client: Client, fleet: Fleet) -> float:
    stop = asyncio.Event()

    async def submit() -> None:
        while not stop.is_set():
            await client.start("kills.moment")
            await asyncio.sleep(0.02)

    load = asyncio.create_task(submit())
    await asyncio.sleep(1 + random.uniform(0, 1))
    at = time.monotonic()
    fleet.kill(random.choice(fleet.of("executor")))
    open_ = [row["id"] for row in await client.session.fetch(OPEN)]
    await asyncio.sleep(0.5)
    stop.set()
    await load
    return await seconds_until(client, at, LEFT, open_, gone=True)


async def measure(count: int, only: str | None) -> None:
    async with installation("bench/kills.py", [hold, moment], OF_EACH) as (client, fleet):
        for role, kill in (("worker", worker_killed), ("executor", executor_killed)):
            if only not in (None, role):
                continue
            times = []
            for _ in range(count):
                await fleet.all_there(client)
                times.append(await kill(client, fleet))
            print(line(role, times), flush=True)


def line(role: str, times: Sequence[float]) -> str:
    times = sorted(times)
    p50, p99 = (times[min(len(times) - 1, int(part * len(times)))] for part in (0.5, 0.99))
    return f"{role:9} {len(times)} kills: p50 {p50:.1f} s, p99 {p99:.1f} s, least {times[0]:.1f}, most {times[-1]:.1f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="kill -9, and how long until the work runs again")
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--only", choices=["worker", "executor"])
    given = parser.parse_args()
    asyncio.run(measure(given.count, given.only))
