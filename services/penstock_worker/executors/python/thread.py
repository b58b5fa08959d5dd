"""The executor of plain functions in its own threads: the default for `def`.

A thread cannot be killed. When an attempt is cancelled or times out, `current().cancelled` becomes true, which the
function can check. If it does not return within the grace it is **leaked**. Its log and its result are dropped, and the
claim's fence keeps it from changing anything. The thread counts against the capacity until it ends, so that a worker
never runs more than it may. Functions that can hang belong in the process executor.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
from functools import partial

import structlog

from penstock.run.calls import call_plain
from penstock.run.task_executors import ExecutorMetrics, Outcome, Run, Tally
from penstock_worker.executors.python.daemon_threads import DaemonThreads

log = structlog.get_logger()


class ThreadExecutor:
    def __init__(self, *, capacity: int = min(32, 4 * (os.cpu_count() or 1))) -> None:
        """Create the executor. `capacity` is the number of threads."""
        self.name = "thread"
        self._tally = Tally(self.name, capacity)
        self._threads = DaemonThreads("penstock-action")
        self.has_capacity = self._tally.has_capacity

    async def open(self) -> None:
        """Do nothing, since threads start when they are needed."""

    async def execute(self, run: Run) -> Outcome:
        started = self._tally.start()
        done = self._threads.call(partial(contextvars.copy_context().run, call_plain, run))
        try:
            outcome = await asyncio.shield(done)
        except asyncio.CancelledError:
            run.cancelled = True
            try:
                await asyncio.wait([done], timeout=run.grace)
            finally:
                self._give_up(run, started, done)
            raise
        except BaseException:
            self._tally.end(started, None)
            raise
        self._tally.end(started, outcome)
        return outcome

    def _give_up(self, run: Run, started: float, done: asyncio.Future[Outcome]) -> None:
        if done.done():
            self._tally.end(started, None)
            return
        log.warning(
            "thread.goes_on",
            execution_id=str(run.event.execution_id),
            attempt=run.event.attempt,
            action=run.action.ref,
            hint="The thread occupies a slot of its worker until the function returns. Run functions that can "
            "hang in the process executor.",
        )
        self._tally.leaked += 1

        def ended(_: asyncio.Future[Outcome]) -> None:
            self._tally.leaked -= 1
            self._tally.end(started, None)

        done.add_done_callback(ended)

    def metrics(self) -> ExecutorMetrics:
        return self._tally.metrics()

    async def close(self, grace: float) -> None:
        """End the threads after their current call. Leaked ones are daemons, and end with the process."""
        self._threads.dismiss()
