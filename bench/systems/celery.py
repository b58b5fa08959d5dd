"""Celery: prefork pool of 4, late acks, publisher confirms, results in PostgreSQL through SQLAlchemy.

Four publisher threads, since each publish waits for its confirm; 32 threads that look for results every 20 ms, since it
opens a connection for each look, of which PostgreSQL has 100. A chord on a database backend is joined by a
task that looks for the first time after one second, whatever `result_chord_retry_interval` says.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version

from celery import Celery, chord
from celery import chain as celery_chain
from celery.result import AsyncResult

from bench.marks import noop
from bench.systems import broker_url, command, database_url

VERSION = version("celery")
OPTIONS = ("-c", "4", "-P", "prefork", "--without-gossip", "--without-mingle", "-l", "WARNING")
PROCESSES = {"worker": [command("celery", "-A", "bench.systems.celery", "worker", *OPTIONS)]}
RECORDED = """
    select substr(task_id, 2)::int, extract(epoch from pg_xact_commit_timestamp(xmin))::float8
    from celery_taskmeta
    where status = 'SUCCESS' and task_id ~ '^t[0-9]+$' and substr(task_id, 2)::int between $1 and $2 - 1
"""

app = Celery("bench", broker=broker_url(), backend="db+" + database_url("postgresql+psycopg"))
app.conf.update(
    broker_transport_options={"confirm_publish": True},
    result_serializer="json",
    task_acks_late=True,
    task_default_delivery_mode="persistent",
    task_reject_on_worker_lost=True,
    task_serializer="json",
    worker_hijack_root_logger=False,
    worker_prefetch_multiplier=16,
)


def join(results: list[int], index: int) -> int:
    return noop(index)


NOOP = app.task(name="noop")(noop)
JOIN = app.task(name="join")(join)
PUBLISHERS, LOOKERS = ThreadPoolExecutor(4), ThreadPoolExecutor(32)
LOOK = 0.02


async def prepare() -> None:
    app.backend.ResultSession()  # makes its tables, which two pool processes at once fail to do


async def connect() -> None:
    pass


def publish(index: int) -> AsyncResult:
    return NOOP.apply_async((index,), task_id=f"t{index}")


def start_chain(first: int, count: int) -> None:
    celery_chain(*(NOOP.si(index) for index in range(first, first + count))).apply_async()


async def send(index: int) -> AsyncResult:
    return await asyncio.get_running_loop().run_in_executor(PUBLISHERS, publish, index)


async def result(index: int) -> int:
    sent = await send(index)
    return await asyncio.get_running_loop().run_in_executor(LOOKERS, lambda: sent.get(interval=LOOK))


async def send_many(first: int, count: int) -> None:
    list(PUBLISHERS.map(publish, range(first, first + count)))


async def chain(first: int, count: int) -> None:
    await asyncio.get_running_loop().run_in_executor(PUBLISHERS, start_chain, first, count)


async def fanout(first: int, count: int) -> None:
    leaves = [NOOP.si(index) for index in range(first + 1, first + 1 + count)]
    celery_chain(NOOP.si(first), chord(leaves, JOIN.s(first + 1 + count))).apply_async()


async def close() -> None:
    app.close()


ORDERS = (send, result, send_many, chain, fanout)
