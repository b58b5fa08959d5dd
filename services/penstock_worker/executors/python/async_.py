"""The executor of coroutine functions on the worker's own event loop: the default for `async def`, and the cheapest.

A coroutine that blocks the loop delays all others. A coroutine that swallows CancelledError ends when it chooses. Use
the process executor for code that may do either. A plain function runs here too if its action says `executor="async"`.
That suits a few microseconds of work, and not a function that waits.
"""

from __future__ import annotations

from penstock.run.calls import call, call_plain
from penstock.run.task_executors import ExecutorMetrics, Outcome, Run, Tally


class AsyncExecutor:
    def __init__(self, *, capacity: int = 100) -> None:
        """Create the executor. `capacity` is the number of attempts at a time."""
        self.name = "async"
        self._tally = Tally(self.name, capacity)
        self.has_capacity = self._tally.has_capacity

    async def open(self) -> None:
        """Do nothing, since nothing has to be prepared."""

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
        """Do nothing. Attempts end with the tasks that await them."""
