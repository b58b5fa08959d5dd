"""A worker of Penstock that gives an attempt to a cluster and is killed: `client_that_dies dask|ray ADDRESS EXECUTION FOLDER`."""

from __future__ import annotations

import asyncio
import sys
from uuid import UUID

from penstock.run.task_executors import Run, RunLog, TaskExecutor, TaskReadyEvent, attempt
from penstock.testing.scenarios import ScenarioAction
from penstock_worker.executors import build
from tests.compute.actions import begin


def run_of(execution: UUID, folder: str, number: int) -> Run:
    event = TaskReadyEvent(execution, number, 9, "public::compute::begin", "compute.begin", root=execution)
    return Run(
        event, {"folder": folder}, ScenarioAction("compute.begin", begin), RunLog(lambda *_: None), grace=2.0
    )


def executor_of(kind: str, address: str) -> TaskExecutor:
    return build(2, {kind: {"address": address}})[kind]


async def main(kind: str, address: str, execution: str, folder: str) -> None:
    executor = executor_of(kind, address)
    await executor.open()
    await attempt(executor, run_of(UUID(execution), folder, 1))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
