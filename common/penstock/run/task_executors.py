"""The public interface of task executors, which run attempts of actions on a worker.

The worker claims an execution, builds a `Run` and awaits `attempt(executor, run)`. The executor does the work and
returns the outcome. The executor accesses neither the database nor the broker. docs/task-executors.md shows how to
write one, and `penstock.testing.executor_conformance` tests its promises.
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
from penstock.run.raised_by_code import ends_from_outside
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
    """The number of running attempts, including leaked ones."""
    executed: int
    """The number of ended attempts, whatever their outcome, including cancelled ones."""
    failed: int
    """The number of ended attempts that failed."""
    cancelled: int
    """The number of ended attempts that were cancelled from outside: on request, by a lost claim, or at their timeout.
    """
    average_duration: float
    """The average seconds of an ended attempt, or 0 before the first."""
    available: int
    """The number of attempts that could be started now."""
    leaked: int = 0
    """The number of attempts that were given up and still run, since they cannot be killed (threads)."""


class TaskExecutor(Protocol):
    """A task executor. It runs several attempts at a time, up to its capacity, all on one event loop."""

    @property
    def name(self) -> str:
        """Return the name of the executor in `executor=` of an action and in the worker's settings."""

    async def open(self) -> None:
        """Prepare for attempts. Called once, before the first one."""

    async def execute(self, run: Run) -> Outcome:
        """Do the work of one attempt and return its outcome.

        A failure of the action itself is an outcome, never an exception. Raises NoCapacity, and starts nothing, if
        `has_capacity()` is False. When the coroutine is cancelled, it ends the work, gently for `run.grace` seconds
        and then by force. Only then it raises CancelledError.
        """

    def has_capacity(self) -> bool:
        """Return whether `execute` would start an attempt now."""

    def metrics(self) -> ExecutorMetrics: ...

    async def close(self, grace: float) -> None:
        """Release all resources. Work that still runs is ended after `grace` seconds."""


class Tally:
    """The counters of an executor, which also keep it within its capacity."""

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
        """Take a place, and return a value for `end`. Raises NoCapacity if no place is free."""
        if self.active >= self.capacity:
            raise NoCapacity(
                f"the {self.name} executor already runs {self.capacity} attempts",
                hint="Ask has_capacity() first, or raise the capacity of this executor.",
            )
        self.active += 1
        return time.monotonic()

    def end(self, started: float, outcome: Outcome | None) -> None:
        """Release a place. `outcome` is None if the attempt was cancelled."""
        self.active -= 1
        self.executed += 1
        self.seconds += time.monotonic() - started
        if outcome is None:
            self.cancelled += 1
        elif outcome.error is not None:
            self.failed += 1

    async def counted(self, work: Callable[[Run], Awaitable[Outcome]], run: Run) -> Outcome:
        """Return the outcome of `work` for the attempt, which occupies a place meanwhile. Raises NoCapacity if no place
        is free, and the errors of `work`."""
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
    """Run one attempt within its timeout, close its log, and return the outcome. The worker awaits this.

    Raises NoCapacity if there is no place, ClaimLost if a durable function is no longer owned, and CancelledError if
    cancelled. An error of the executor itself becomes a failed outcome, to which the retry policy applies. So a bug in
    one executor fails only its own work.
    """
    task = asyncio.current_task()
    try:
        if run.timeout is None:
            return await executor.execute(run)
        return await _within(run.timeout, executor, run)
    except (NoCapacity, ClaimLost):
        raise
    except BaseException as fault:
        if ends_from_outside(fault, task):
            raise
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
        # If the attempt was also cancelled from outside, that takes precedence over the timeout.
        if deadline.expired and task.cancelling() <= cancellations + 1:
            return Outcome.timed_out(seconds)
        raise
    finally:
        watch.lift(deadline)
        if deadline.expired:
            task.uncancel()
