"""A task executor of your own: coroutines that share one slow thing, at most so many a second.

A scanner, a till, a partner's API with a quota: work for it may wait for its turn, but never come too fast. Copy this
file to begin yours; docs/task-executors.md explains each part. On the worker, name it in the settings:

    {"till": {"class": "custom_executor:PacedExecutor", "capacity": 5, "per_second": 2}}

or in a module that it runs, `register_executor("till", PacedExecutor, per_second=2)`; and ask for it
with `@action(executor="till")`.
"""

from __future__ import annotations

import asyncio

from penstock.run.calls import call
from penstock.run.task_executors import ExecutorMetrics, Outcome, Run, Tally


class PacedExecutor:
    def __init__(self, *, capacity: int = 5, per_second: float = 1.0) -> None:
        """`capacity`: attempts at a time, waiting ones included. `per_second`: how many may begin in a second."""
        self.name = "till"
        self._tally = Tally(self.name, capacity)
        self._pause = 1 / per_second
        self._turn = asyncio.Lock()

    async def open(self) -> None:
        """Connect to the device here. What this raises stops the worker at its start."""

    async def execute(self, run: Run) -> Outcome:
        started, outcome = self._tally.start(), None  # raises NoCapacity when the place is taken
        try:
            async with self._turn:
                await asyncio.sleep(self._pause)
            outcome = await call(run)  # binds the parameters, sets the context, turns errors into outcomes
            return outcome
        finally:
            self._tally.end(started, outcome)  # an outcome of None counts as cancelled

    def has_capacity(self) -> bool:
        return self._tally.has_capacity()

    def metrics(self) -> ExecutorMetrics:
        return self._tally.metrics()

    async def close(self, grace: float) -> None:
        """Disconnect here. Attempts have ended already, unless the worker was in a hurry."""
