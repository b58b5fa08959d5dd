"""Executors that end themselves with SIGKILL right before or right after the n-th commit of a handler that advances
workflows. They are forked by a process that has imported everything, which costs little."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import traceback
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from pydantic import SecretStr

from penstock.service.assembly import assembled, stop_on_signals
from penstock.service.log_setup import configure_logging
from penstock.settings import Settings
from penstock.store.session import crash_points
from penstock_executor import main as executor

HANDLERS = ("consume workflow.started", "consume execution.completed")
MOMENTS = {"before": "committing", "after": "committed"}


def doom(when: str, number: int) -> None:
    """Let this process die so."""
    left = number

    def reached(what: str, connection: object) -> None:
        nonlocal left
        task = asyncio.current_task()
        if what == MOMENTS[when] and task is not None and task.get_name() in HANDLERS:
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    crash_points.reached = reached


async def _work(settings: Mapping[str, Any]) -> None:
    own_settings = Settings(**settings)
    configure_logging(own_settings)
    stop = stop_on_signals()
    async with assembled(own_settings, role="executor") as parts:
        await executor.work(parts, stop)


def _forked(job: dict[str, Any]) -> int:
    """The pid of a new executor."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            doom(job["when"], job["number"])
            asyncio.run(_work(job["settings"]))
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    return pid


class Nursery:
    """Has executors forked, and says how they ended."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.pid = 0

    async def begin(self, when: str, number: int, settings: Mapping[str, Any]) -> None:
        """One that dies `before` or `after` its commit `number`."""
        plain = {
            name: value.get_secret_value() if isinstance(value, SecretStr) else value
            for name, value in settings.items()
        }
        assert self._process.stdin is not None
        self._process.stdin.write(
            json.dumps({"when": when, "number": number, "settings": plain}).encode() + b"\n"
        )
        self.pid = await self._said()

    async def ended(self) -> bool:
        """Wait for its end: whether it was the SIGKILL."""
        return await self._said() == -signal.SIGKILL

    async def _said(self) -> int:
        assert self._process.stdout is not None
        return int(await self._process.stdout.readline())


@asynccontextmanager
async def nursery() -> AsyncIterator[Nursery]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.crash.dying"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield Nursery(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()


def main() -> None:
    for line in sys.stdin:
        pid = _forked(json.loads(line))
        print(pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
