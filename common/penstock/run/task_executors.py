"""The public interface of task executors: what runs one attempt of an action on a worker.

The worker claims an execution, builds a `Run` and awaits `attempt(executor, run)`; the executor does the work
and says what came of it. It sees neither the database nor the broker. docs/task-executors.md shows how to
write one, and `penstock.testing.executor_conformance` tests whether it keeps its promises.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from penstock.errors import ClaimLost, NoCapacity
from penstock.run.deadlines import deadlines
from penstock.run.outcomes import Outcome, TaskError
from penstock.run.run import Run, RunnableAction, TaskReadyEvent
from penstock.run.run_log import RunLog

__all__ = [
    "ExecutorMetrics",
    "Outcome",
    "Run",
    "RunLog",
    "RunnableAction",
    "Tally",
    "TaskError",
    "TaskExecutor",
    "TaskReadyEvent",
    "attempt",
]


@dataclass(frozen=True, slots=True)
class ExecutorMetrics:
    active: int
    """Attempts that run now, leaked ones included."""
    executed: int
    """Attempts that ended, whatever their outcome, cancelled ones included."""
    failed: int
    """Of those, how many failed."""
    cancelled: int
    """Of those, how many were cancelled from outside: on request, by a lost claim, or at their timeout."""
    average_duration: float
    """Seconds that an ended attempt took; 0 before the first."""
    available: int
    """How many more attempts can be started now."""
    leaked: int = 0
    """Attempts that were given up but still run, because their kind cannot be killed (threads)."""


class TaskExecutor(Protocol):
    """Runs attempts. Several at a time, up to its capacity, all on one event loop."""

    @property
    def name(self) -> str:
        """Return the name that `executor=` of an action and the worker's settings use."""

    async def open(self) -> None:
        """Make ready. Called once, before the first attempt."""

    async def execute(self, run: Run) -> Outcome:
        """Do the work of one attempt and say what came of it.

        A failure of the action's own is an outcome, never an exception. Raises NoCapacity, having started
        nothing, where `has_capacity()` is False. When the coroutine is cancelled the work is really ended,
        gently for `run.grace` seconds and then by force, before CancelledError is raised on."""

    def has_capacity(self) -> bool:
        """Return true if `execute` would start an attempt now."""

    def metrics(self) -> ExecutorMetrics: ...

    async def close(self, grace: float) -> None:
        """Let go of everything. What still runs is ended after `grace` seconds."""


class Tally:
    """Counts what an executor does, and keeps it within its capacity."""

    __slots__ = ("active", "cancelled", "capacity", "executed", "failed", "leaked", "name", "seconds")

    def __init__(self, name: str, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"the capacity of the {name} executor must be at least 1, not {capacity}")
        self.name = name
        self.capacity = capacity
        self.active = self.executed = self.failed = self.cancelled = self.leaked = 0
        self.seconds = 0.0

    def has_capacity(self) -> bool:
        return self.active < self.capacity

    def start(self) -> float:
        """Take a place; the answer is for `end`. Raises NoCapacity if there is none."""
        if self.active >= self.capacity:
            raise NoCapacity(
                f"the {self.name} executor already runs {self.capacity} attempts",
                hint="Ask has_capacity() first, or raise the capacity of this executor.",
            )
        self.active += 1
        return time.monotonic()

    def end(self, started: float, outcome: Outcome | None) -> None:
        """Give the place back. An outcome of None: the attempt was cancelled."""
        self.active -= 1
        self.executed += 1
        self.seconds += time.monotonic() - started
        if outcome is None:
            self.cancelled += 1
        elif outcome.error is not None:
            self.failed += 1

    async def counted(self, work: Callable[[Run], Awaitable[Outcome]], run: Run) -> Outcome:
        """Return the outcome of `work` for the attempt, which has a place meanwhile. Raises NoCapacity, and what
        `work` raises."""
        started, outcome = self.start(), None
        try:
            outcome = await work(run)
            return outcome
        finally:
            self.end(started, outcome)

    def metrics(self) -> ExecutorMetrics:
        return ExecutorMetrics(
            active=self.active,
            executed=self.executed,
            failed=self.failed,
            cancelled=self.cancelled,
            average_duration=self.seconds / self.executed if self.executed else 0.0,
            available=max(0, self.capacity - self.active),
            leaked=self.leaked,
        )


async def attempt(executor: TaskExecutor, run: Run) -> Outcome:
    """Run one attempt within its time, and close its log. This is what the worker awaits.

    Raises NoCapacity, ClaimLost (of a durable function) and, when cancelled, CancelledError. A fault in the executor itself is a
    failed outcome for the retry policy. So a bug in one executor fails only its own work."""
    try:
        if run.timeout is None:
            return await executor.execute(run)
        return await _within(run.timeout, executor, run)
    except (NoCapacity, ClaimLost):
        raise
    except Exception as fault:
        return Outcome.failed(fault)
    finally:
        run.log.close()


async def _within(seconds: float, executor: TaskExecutor, run: Run) -> Outcome:
    watch = deadlines()
    deadline = watch.watch(seconds)
    task, cancellations = deadline.task, deadline.task.cancelling()
    try:
        return await executor.execute(run)
    except asyncio.CancelledError:
        # A cancellation from outside that came as well still counts, and wins.
        if deadline.expired and task.cancelling() <= cancellations + 1:
            return Outcome.timed_out(seconds)
        raise
    finally:
        watch.lift(deadline)
        if deadline.expired:
            task.uncancel()
