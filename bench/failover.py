"""Nodes of both clusters are killed, frozen and taken out while work is submitted at a steady rate; nothing that was
acknowledged may be lost, and everything has to go on.

    python -m bench.failover                                   # 500 a second, every fault three times
    python -m bench.failover --rate 100 --times 1 --faults primary-killed node-killed

At default settings, on three RabbitMQ nodes and a PostgreSQL with a synchronous standby: two executors and three workers.
Each start has a key, and who gets an error starts it again with the same key, as callers do. After each fault the cluster is
made whole again, and what waits is worked off.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import logging
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import structlog
from pydantic import SecretStr

from bench.cluster_faults import FAULTS, Clusters
from bench.replicas import PATIENCE, Fleet
from bench.servers import DISK
from penstock import Client, Definitions, PenstockError, Settings, action
from penstock.operate.apply import register
from penstock.operate.check import check
from penstock.store.schema import migrate
from penstock.store.session.database import Row, is_transient
from tests.servers import choose
from tests.servers.process import new_folder, remove
from tests.servers.replicated import ReplicatedPostgres

ROLES = ("executor", "worker", "executor", "worker", "worker")
TICKS = 20
"""A second's work is submitted in so many parts."""
LEAD, AFTER = 3.0, 5.0
"""Seconds of load before a fault, and after all is back."""
ROOM = {"max_connections": "200"}
AGAIN = 0.1
OPEN = "select from execution where finished_at is null limit 1"
KEYS = "select key from idempotency"
STATUSES = "select status, count(*)::integer as count from execution group by status"
BEGUN_AGAIN = "select count(*)::integer as count from execution where attempt > 1"
MOVING = """
with ends as (
    select h.at, h.execution_id, h.actor from history h where h.new = 'completed' and h.at > to_timestamp($1)
), before as (
    select max(n.at) as at from ends n join execution e on e.id = n.execution_id where e.created_at <= to_timestamp($2)
), gaps as (
    select at - lag(at, 1, to_timestamp($1)) over (order by at) as gap from ends where at <= to_timestamp($3)
)
select extract(epoch from (select min(at) from ends where at > to_timestamp($2)))::float8 - $2 as first,
    coalesce(extract(epoch from (select at from before))::float8 - $2, 0) as rest,
    extract(epoch from (select max(gap) from gaps))::float8 as gap
"""
"""From the fault ($1), from when all that is needed serves ($2), until the end of the load ($3): until something ended, until all
that was there before had ended, and the longest time without an end."""


@action(pack="failover")
async def moment() -> None:
    await asyncio.sleep(0.02)


@dataclass
class Load:
    """Starts so many a second, whether or not those before are acknowledged yet."""

    client: Client
    rate: int
    acknowledged: dict[str, float] = field(default_factory=dict)
    """Key to when, in seconds of the clock."""
    refused: int = 0
    """Times that a start got an error and was tried again."""
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _under_way: set[asyncio.Task[None]] = field(default_factory=set)
    stop: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Publish until stopped, and wait until all messages are acknowledged."""
        self.stop.clear()
        began = time.monotonic()
        for tick in itertools.count():
            if self.stop.is_set():
                break
            await asyncio.sleep(max(0.0, began + tick / TICKS - time.monotonic()))
            for _ in range(self.rate // TICKS):
                task = asyncio.create_task(self._start(f"n-{next(self._numbers)}"))
                self._under_way.add(task)
                task.add_done_callback(self._under_way.discard)
        await asyncio.gather(*self._under_way)

    async def _start(self, key: str) -> None:
        while True:
            try:
                await self.client.start("failover.moment", key=key)
                break
            except (PenstockError, OSError) as error:
                if not is_transient(error):
                    raise
                self.refused += 1
                await asyncio.sleep(AGAIN)
        self.acknowledged[key] = time.time()


class Bench(NamedTuple):
    clusters: Clusters
    client: Client
    settings: Settings

    async def rows(self, sql: str, *args: object) -> list[Row]:
        """On connections of its own: those of the client may lead to what is frozen."""
        async with Client.connect(self.settings) as client:
            return await client.session.fetch(sql, *args)


@asynccontextmanager
async def running() -> AsyncIterator[Bench]:
    tempfile.tempdir = DISK
    folder = new_folder("failover")
    postgres = await asyncio.to_thread(ReplicatedPostgres, ROOM)
    rabbitmq = await asyncio.to_thread(choose.rabbitmq_cluster)
    broker = await asyncio.to_thread(rabbitmq.add_vhost, "failover")
    variables = {
        "PENSTOCK_DATABASE_URL": postgres.dsn(),
        "PENSTOCK_BROKER_URL": broker,
        "PENSTOCK_LOG_LEVEL": "warning",
    }
    outside = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    fleet = Fleet({**outside, **variables}, folder / "services.log", "bench/failover.py")
    settings = Settings(database_url=SecretStr(postgres.dsn()), broker_url=SecretStr(broker))
    try:
        await migrate.upgrade(settings)
        async with Client.connect(settings) as client:
            await register(client.session, Definitions([moment]))
            for role in ROLES:
                fleet.start(role)
            await fleet.all_there(client)
            yield Bench(Clusters(postgres, rabbitmq), client, settings)
    finally:
        log_text = Path(fleet.log).read_text(errors="replace")
        print(
            f"{log_text.count('[error')} errors and {log_text.count('[warning')} warnings in the services' log"
        )
        fleet.close()
        await asyncio.to_thread(rabbitmq.close)
        await asyncio.to_thread(postgres.close)
        remove(folder)


async def through(bench: Bench, load: Load, name: str) -> str:
    """Cause one fault, and return a line about it."""
    acknowledged_before, refused = len(load.acknowledged), load.refused
    loading = asyncio.create_task(load.run())
    await asyncio.sleep(LEAD)
    at = time.time()
    served = await FAULTS[name](bench.clusters)
    await asyncio.sleep(AFTER)
    end = time.time()
    load.stop.set()
    async with asyncio.timeout(PATIENCE):
        await loading
    acknowledged = (
        min((instant for instant in load.acknowledged.values() if instant > served), default=end) - served
    )
    async with asyncio.timeout(PATIENCE):
        while await bench.rows(OPEN):
            await asyncio.sleep(0.2)
    [[first, remainder, gap]] = await bench.rows(MOVING, at, served, end)
    return (
        f"{name:18} {len(load.acknowledged) - acknowledged_before:8,} {load.refused - refused:8,} {served - at:7.1f} "
        f"{acknowledged:7.1f} {first:7.1f} {remainder:7.1f} {gap:7.1f}"
    )


async def measure(rate: int, times: int, faults: list[str]) -> bool:
    """Return whether nothing was lost, failed or violated."""
    async with running() as bench:
        load = Load(bench.client, rate)
        print(
            "fault               started  refused  served   acked   first    rest     gap  (seconds)",
            flush=True,
        )
        for name in faults * times:
            print(await through(bench, load, name), flush=True)
        stored_keys = {row["key"] for row in await bench.rows(KEYS)}
        statuses = {row["status"]: row["count"] for row in await bench.rows(STATUSES)}
        [[again]] = await bench.rows(BEGUN_AGAIN)
        violated = {
            invariant.name: len(invariant.violations)
            for invariant in await check(bench.client.session)
            if invariant.violations
        }
    lost_count = len(load.acknowledged.keys() - stored_keys)
    print(
        f"{len(load.acknowledged):,} acknowledged, lost {lost_count}; ended as {statuses}; begun again {again}"
    )
    print(f"invariants violated: {violated or 'none'}")
    whole = sum(statuses.values()) == len(load.acknowledged)
    return not lost_count and whole and set(statuses) == {"completed"} and not violated


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rate", type=int, default=500)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--faults", nargs="+", choices=FAULTS, default=list(FAULTS))
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    logging.disable()
    sys.exit(not asyncio.run(measure(given.rate, given.times, given.faults)))
