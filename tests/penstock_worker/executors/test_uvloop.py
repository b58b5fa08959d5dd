"""Workers run on uvloop, which has its own ideas of subprocesses, pipes and sockets."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import uvloop

from penstock.run.task_executors import Outcome, TaskExecutor, attempt
from penstock_worker.executors.http.http import HttpExecutor
from penstock_worker.executors.processes.command import CommandExecutor
from penstock_worker.executors.python.process import ProcessExecutor
from penstock_worker.executors.python.thread import ThreadExecutor
from tests.penstock_worker.executors import victims
from tests.penstock_worker.executors.runs import run_of, until
from tests.penstock_worker.executors.web import serve_scenarios, serving


def test_executors_run_and_end_their_work_on_uvloop_too(tmp_path: Path) -> None:
    outcomes: dict[str, Any] = {}

    async def main() -> None:
        outcomes["process"] = await _once(ProcessExecutor(), victims.describe, {"thing": [1]})
        outcomes["died"] = await _once(ProcessExecutor(), victims.exit_now, {"status": 3})
        outcomes["command"] = await _once(CommandExecutor(), {"command": ["cat"]}, {"n": 1})
        outcomes["thread"] = await _once(ThreadExecutor(), lambda: "done", {})
        async with serving() as web:
            serve_scenarios(web)
            params = {"value": "there and back"}
            allowed = HttpExecutor(allow=["127.0.0.1"])
            outcomes["http"] = await _once(allowed, {"url": web.url("/echo")}, params)
        path = tmp_path / "state"
        executor = ProcessExecutor()
        task = asyncio.create_task(attempt(executor, run_of(victims.tidy, {"path": str(path)})[0]))
        await until(lambda: path.exists() and path.read_text() == "began")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await executor.close(0)
        outcomes["tidied"] = path.read_text()

    thread = threading.Thread(target=lambda: uvloop.run(main()))
    thread.start()
    thread.join()
    assert outcomes["process"].result == "list"
    assert outcomes["died"].error.type == "ProcessDied"
    assert outcomes["command"].result == {"n": 1}
    assert outcomes["thread"].result == "done"
    assert outcomes["http"].result["value"] == "there and back"
    assert outcomes["tidied"] == "tidied"


async def _once(executor: TaskExecutor, what: Any, params: dict[str, Any]) -> Outcome:
    await executor.open()
    try:
        return await attempt(executor, run_of(what, params)[0])
    finally:
        await executor.close(0)
