"""Taskiq: two worker processes on aio-pika, acks once the result is in PostgreSQL, submits by 100, and a look each 10 ms for a
result."""

from __future__ import annotations

import asyncio
from importlib.metadata import version

import taskiq.compat

taskiq.compat.IS_PYDANTIC2 = True  # taskiq-postgresql 0.4.0 imports this name, which taskiq 0.13 dropped

from taskiq import AsyncTaskiqTask  # noqa: E402
from taskiq_aio_pika import AioPikaBroker, Queue  # noqa: E402
from taskiq_pipelines import Pipeline, PipelineMiddleware  # noqa: E402
from taskiq_postgresql import PostgresqlResultBackend  # noqa: E402

from bench.marks import noop  # noqa: E402
from bench.systems import broker_url, command, database_url  # noqa: E402

VERSION = version("taskiq")
LOOK = 0.01
OPTIONS = ("-w", "2", "--max-async-tasks", "200", "--ack-type", "when_saved", "--log-level", "WARNING")
PROCESSES = {"worker": [command("taskiq", "worker", "bench.systems.taskiq:broker", *OPTIONS)]}
RECORDED = """
    select substr(task_id, 2)::int, extract(epoch from pg_xact_commit_timestamp(xmin))::float8
    from taskiq_results where task_id ~ '^t[0-9]+$' and substr(task_id, 2)::int between $1 and $2 - 1
"""

results = PostgresqlResultBackend(database_url(), field_for_task_id="Text", run_migrations=True)
broker = AioPikaBroker(broker_url(), qos=200).with_queue(Queue(name="bench")).with_result_backend(results)
broker.add_middlewares(PipelineMiddleware())


async def run(index: int) -> int:
    return noop(index)


async def step(index: int) -> int:
    return noop(index) + 1


async def spread(index: int, count: int) -> list[int]:
    noop(index)
    return list(range(index + 1, index + 1 + count))


async def join(indexes: list[int]) -> int:
    return noop(max(indexes) + 1)


NOOP, STEP = broker.register_task(run, "noop"), broker.register_task(step, "step")
SPREAD, JOIN = broker.register_task(spread, "spread"), broker.register_task(join, "join")


async def prepare() -> None:
    await broker.startup()  # makes the table and the queue


async def connect() -> None:
    pass


async def send(index: int) -> AsyncTaskiqTask[int]:
    return await NOOP.kicker().with_task_id(f"t{index}").kiq(index)


async def result(index: int) -> int:
    return (await (await send(index)).wait_result(check_interval=LOOK)).return_value


async def send_many(first: int, count: int) -> None:
    for start in range(first, first + count, 100):
        await asyncio.gather(*(send(index) for index in range(start, min(start + 100, first + count))))


async def chain(first: int, count: int) -> None:
    pipeline = Pipeline(broker, STEP)
    for _ in range(count - 1):
        pipeline = pipeline.call_next(STEP)
    await pipeline.kiq(first)


async def fanout(first: int, count: int) -> None:
    await Pipeline(broker, SPREAD).map(NOOP).call_next(JOIN).kiq(first, count)


async def close() -> None:
    await broker.shutdown()


ORDERS = (send, result, send_many, chain, fanout)
