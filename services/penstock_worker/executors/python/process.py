"""The executor of functions in child processes, which are reused: for code that hangs, leaks, crashes or blocks.

Cancelled work gets SIGTERM, which raises inside the function so that its `finally` blocks run. After the grace it gets
SIGKILL, with all processes that it has started. A crash, `os._exit` or a segmentation fault fails only its own
attempt. Children die with the worker, even by kill -9. Between attempts a child is an ordinary process: threads or
subprocesses that an action leaves running stay until the child is replaced.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from penstock.attempts.executor_options import options_of
from penstock.errors import ConfigurationError
from penstock.language.definitions.program_actions import ProcessOptions
from penstock.run.task_executors import ExecutorMetrics, Outcome, Run, Tally, TaskError
from penstock_worker.executors.python import frames
from penstock_worker.executors.python.child_process import Child
from penstock_worker.executors.python.jobs import job_of


class ProcessExecutor:
    def __init__(
        self,
        *,
        capacity: int = os.cpu_count() or 1,
        warm: int = 0,
        jobs_per_child: int = 200,
        memory_limit: int | None = None,
    ) -> None:
        """Create the executor.

        `capacity` is the number of children at a time. `warm` is the number of children that are started at once;
        others start when first needed, and stay. `jobs_per_child` is the number of attempts after which a child is
        replaced, which ends leaks. `memory_limit` is for actions without their own.
        """
        if memory_limit is not None and sys.platform != "linux":
            raise ConfigurationError("memory_limit of the process executor needs Linux", hint="Leave it out.")
        self.name = "process"
        self._tally = Tally(self.name, capacity)
        self.has_capacity = self._tally.has_capacity
        self._warm = min(warm, capacity)
        self._jobs_per_child = jobs_per_child
        self._memory_limit = memory_limit
        self._idle: list[Child] = []
        self._busy: set[Child] = set()
        self._chores: set[asyncio.Task[None]] = set()
        self._closed = False

    async def open(self) -> None:
        """Start the warm children. Raises OSError if no process can be created."""
        while len(self._idle) < self._warm:
            self._idle.append(await Child.start())

    async def execute(self, run: Run) -> Outcome:
        return await self._tally.counted(self._run, run)

    def metrics(self) -> ExecutorMetrics:
        return self._tally.metrics()

    async def close(self, grace: float) -> None:
        """Retire idle children at once, and busy ones after `grace` seconds. Their attempts fail as ProcessDied."""
        self._closed = True
        for child in self._idle:
            self._do(child.retire())
        self._idle.clear()
        waited = 0.0
        while self._busy and waited < grace:
            await asyncio.sleep(0.05)
            waited += 0.05
        await asyncio.gather(*(child.end(0) for child in self._busy), *self._chores)

    async def _run(self, run: Run) -> Outcome:
        try:
            job = self._job(run)
        except Exception as error:  # invalid options or parameters, or a function that a child cannot import
            return Outcome.raised(error, retryable=False)
        try:
            child = self._take() or await Child.start()
        except OSError as error:
            return Outcome.failed(TaskError("ProcessNotStarted", f"no process could be started: {error}"))
        self._busy.add(child)
        spent = True
        try:
            outcome = await child.perform(job, run.log, run.result_limit, run.outgoing, run.items or ())
            # After a MemoryError much of the allocated memory is still mapped, and fragmented.
            spent = (
                child.jobs >= self._jobs_per_child
                or _ran_out_of_memory(outcome)
                or child.is_spoiled
                or not child.alive
            )
            return outcome
        except asyncio.CancelledError:
            run.cancelled = True
            await child.end(run.grace)
            raise
        finally:
            self._busy.discard(child)
            if spent or self._closed:
                self._do(child.retire())
                self._do(self._refill())
            else:
                self._idle.append(child)

    def _take(self) -> Child | None:
        while self._idle:
            child = self._idle.pop()
            if child.alive:
                return child
            self._do(child.retire())
        return None

    async def _refill(self) -> None:
        with suppress(OSError):  # the next attempt tries again, and reports the error
            while not self._closed and len(self._idle) + len(self._busy) < self._warm:
                self._idle.append(await Child.start())

    def _do(self, chore: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(chore)
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)

    def _job(self, run: Run) -> bytes:
        options = options_of(run, ProcessOptions)
        return frames.job_frame(job_of(run, options.memory_limit or self._memory_limit))


def _ran_out_of_memory(outcome: Outcome) -> bool:
    return outcome.error is not None and "MemoryError" in outcome.error.kinds
