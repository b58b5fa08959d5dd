"""PgQueuer: two processes that take 100 jobs a batch, enqueued 100 a call. It has no workflows and keeps
no results.

Its completions are buffered for about 100 ms, which shows in the recorded latency.
"""

from __future__ import annotations

import asyncio
from importlib.metadata import version

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from bench.marks import noop
from bench.systems import database_url, module

VERSION = version("pgqueuer")
# `pgq run` of 1.6.0 fails in its log set-up with typer 0.29 ('str' object has no attribute 'name').
PROCESSES = {"worker": [module("bench.systems.pgqueuer")] * 2}
# Its log knows a job by its number alone. They count from 1 in the order of enqueueing, our indexes from 0.
RECORDED = """
    select job_id::int - 1, extract(epoch from max(pg_xact_commit_timestamp(xmin)))::float8 from pgqueuer_log
    where status = 'successful' and job_id between $1 + 1 and $2 group by job_id
"""

_queries: Queries


async def open_queries() -> Queries:
    return Queries(AsyncpgDriver(await asyncpg.connect(database_url())))


async def prepare() -> None:
    global _queries
    _queries = await open_queries()
    await _queries.install()


async def connect() -> None:
    pass


async def send(index: int) -> None:
    await _queries.enqueue("noop", b"%d" % index)


async def send_many(first: int, count: int) -> None:
    for start in range(first, first + count, 100):
        bodies = [b"%d" % index for index in range(start, min(start + 100, first + count))]
        await _queries.enqueue(["noop"] * len(bodies), bodies, [0] * len(bodies))


async def close() -> None:
    pass


ORDERS = (send, send_many)


async def run(job: Job) -> None:
    noop(int(job.payload or b"-1"))


async def work() -> None:
    queuer = PgQueuer(AsyncpgDriver(await asyncpg.connect(database_url())))
    queuer.entrypoint("noop")(run)
    await queuer.run(batch_size=100)


if __name__ == "__main__":
    asyncio.run(work())
