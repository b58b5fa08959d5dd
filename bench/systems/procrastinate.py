"""Procrastinate: two processes of 8, LISTEN and NOTIFY, deferred 100 a call. It keeps no results and cannot join a
fan-out."""

from __future__ import annotations

from importlib.metadata import version

import procrastinate

from bench.marks import noop
from bench.systems import command, database_url

VERSION = version("procrastinate")
WORKER = command(
    "procrastinate", "--log-level", "warning", "-a", "bench.systems.procrastinate.app", "worker", "-c", "8"
)
PROCESSES = {"worker": [WORKER, WORKER]}
RECORDED = """
    select (args->>'index')::int, extract(epoch from pg_xact_commit_timestamp(xmin))::float8
    from procrastinate_jobs where status = 'succeeded' and (args->>'index')::int between $1 and $2 - 1
"""

app = procrastinate.App(
    connector=procrastinate.PsycopgConnector(conninfo=database_url(), min_size=4, max_size=20)
)


async def run(index: int) -> None:
    noop(index)


async def step(index: int, left: int) -> None:
    noop(index)
    if left:
        await STEP.defer_async(index=index + 1, left=left - 1)


NOOP, STEP = app.task(name="noop")(run), app.task(name="step")(step)


async def prepare() -> None:
    await app.open_async()
    await app.schema_manager.apply_schema_async()


async def connect() -> None:
    pass


async def send(index: int) -> None:
    await NOOP.defer_async(index=index)


async def send_many(first: int, count: int) -> None:
    for start in range(first, first + count, 100):
        await NOOP.batch_defer_async(*({"index": k} for k in range(start, min(start + 100, first + count))))


async def chain(first: int, count: int) -> None:
    await STEP.defer_async(index=first, left=count - 1)


async def close() -> None:
    await app.close_async()


ORDERS = (send, send_many, chain)
