"""DBOS: a queue polled each 0.1 s by two processes, up to 50 workflows a poll each; four publisher threads, and
100 that each look for a result every 10 ms.

The steps of a chain run inside one workflow; the children of a fan-out are queued workflows.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.metadata import version
from typing import Any

from dbos import DBOS, DBOSClient, WorkflowHandle

from bench.marks import noop
from bench.systems import command, database_url, module

VERSION = version("dbos")
PROCESSES = {"worker": [module("bench.systems.dbos", "first"), module("bench.systems.dbos", "second")]}
RECORDED = """
    select substr(workflow_uuid, 2)::int, extract(epoch from pg_xact_commit_timestamp(xmin))::float8
    from dbos.workflow_status where status = 'SUCCESS' and workflow_uuid ~ '^t[0-9]+$'
    and substr(workflow_uuid, 2)::int between $1 and $2 - 1
"""

URL = database_url("postgresql+psycopg")
PUBLISHERS, LOOKERS = ThreadPoolExecutor(4), ThreadPoolExecutor(100)
LOOK = 0.01
_client: DBOSClient


def run(index: int) -> int:
    return noop(index)


def run_chain(first: int, count: int) -> None:
    for index in range(first, first + count):
        STEP(index)


def run_fanout(first: int, count: int) -> None:
    STEP(first)
    children = [DBOS.enqueue_workflow("bench", NOOP, first + 1 + k) for k in range(count)]
    for child in children:
        child.get_result()
    STEP(first + 1 + count)


NOOP, STEP = DBOS.workflow(name="noop")(run), DBOS.step(name="step")(noop)
CHAIN, FANOUT = DBOS.workflow(name="chain")(run_chain), DBOS.workflow(name="fanout")(run_fanout)


def enqueue(workflow: str, queue: str, index: int, *arguments: int) -> WorkflowHandle[Any]:
    options = {"queue_name": queue, "workflow_name": workflow, "workflow_id": f"t{index}", "app_version": "1"}
    return _client.enqueue(options, index, *arguments)


def publish(index: int) -> WorkflowHandle[Any]:
    return enqueue("noop", "bench", index)


def migrate() -> None:
    subprocess.run(command("dbos", "migrate", "--sys-db-url", URL), check=True)


async def prepare() -> None:
    global _client
    await asyncio.to_thread(migrate)
    _client = DBOSClient(system_database_url=URL)


async def connect() -> None:
    pass


async def send(index: int) -> WorkflowHandle[Any]:
    return await asyncio.get_running_loop().run_in_executor(PUBLISHERS, publish, index)


async def result(index: int) -> int:
    started = await send(index)
    look = partial(started.get_result, polling_interval_sec=LOOK)
    return await asyncio.get_running_loop().run_in_executor(LOOKERS, look)


async def send_many(first: int, count: int) -> None:
    list(PUBLISHERS.map(publish, range(first, first + count)))


async def chain(first: int, count: int) -> None:
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(PUBLISHERS, enqueue, "chain", "parents", first, count)


async def durable(first: int, count: int) -> None:
    """Run a chain as steps of one function."""
    await chain(first, count)


async def fanout(first: int, count: int) -> None:
    enqueue("fanout", "parents", first, count)


async def close() -> None:
    _client.destroy()


ORDERS = (send, result, send_many, chain, fanout, durable)


def work(process: str) -> None:
    DBOS(
        config={
            "name": "bench",
            "system_database_url": URL,
            "executor_id": process,
            "application_version": "1",
            "log_level": "ERROR",
        }
    )
    DBOS.launch()
    DBOS.register_queue("bench", worker_concurrency=50, polling_interval_sec=0.1)
    DBOS.register_queue("parents", worker_concurrency=10, polling_interval_sec=0.1)
    signal.pause()


if __name__ == "__main__":
    work(sys.argv[1])
