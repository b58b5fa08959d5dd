"""Runs coroutine functions on the worker's own event loop: the default for `async def`, and the cheapest.

A coroutine that blocks the loop delays the others; one that swallows CancelledError ends when it chooses. Use
the process executor for code that cannot be trusted with either. A plain function runs here too when its
action says `executor="async"`: right for a few microseconds of work, wrong for anything that waits.
"""

from __future__ import annotations

from penstock.run.calls import call, call_plain
from penstock.run.task_executors import ExecutorMetrics, Outcome, Run, Tally


class AsyncExecutor:
    def __init__(self, *, capacity: int = 100) -> None:
        """`capacity`: attempts at a time."""
        self.name = "async"
        self._tally = Tally(self.name, capacity)
        self.has_capacity = self._tally.has_capacity

    async def open(self) -> None:
        """Nothing to make ready."""

    async def execute(self, run: Run) -> Outcome:
        started, outcome = self._tally.start(), None
        try:
            outcome = await call(run) if run.action.is_coroutine else call_plain(run)
            return outcome
        finally:
            self._tally.end(started, outcome)

    def metrics(self) -> ExecutorMetrics:
        return self._tally.metrics()

    async def close(self, grace: float) -> None:
        """Nothing to let go of: attempts live in the tasks that await them, and end with those."""
