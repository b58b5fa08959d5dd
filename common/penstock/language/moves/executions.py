"""The statuses of an execution, and its legal moves."""

from __future__ import annotations

REQUESTED = "requested"
"""The execution is to run. With `not_before` in the future it waits for that instant (a retry, a delay)."""
QUEUED = "queued"
"""The execution waits for a slot of a limit, or for a worker that can run it, in the `waiter` table, off the scheduling path."""
SCHEDULED = "scheduled"
"""The execution is admitted, and its envelope is on a route."""
RUNNING = "running"
"""A worker has claimed an attempt of the execution. A workflow is running while its tasks are under way."""
WAITING = "waiting"
"""The execution waits for an answer, event, timer, signal, child or callback. No worker has claimed it."""
CANCELING = "canceling"
"""The execution is to end (it was cancelled or timed out) while a worker runs it. It still holds its slot."""
COMPLETED = "completed"
"""The execution has succeeded, and its result is stored."""
FAILED = "failed"
"""The last attempt raised an error, or the execution could not be started."""
TIMEOUT = "timeout"
"""An attempt, or the whole execution, exceeded its timeout, or it did not start in time."""
CANCELLED = "cancelled"
"""The execution was cancelled on request, or refused by a limit."""
ABANDONED = "abandoned"
"""The execution lost its worker more often than `max_recoveries` allows."""
SKIPPED = "skipped"
"""The task of a workflow did not run because of its trigger rule, or an operator skipped it."""

FINAL = frozenset({COMPLETED, FAILED, TIMEOUT, CANCELLED, ABANDONED, SKIPPED})
"""The final statuses: no attempt follows, and the status never changes (invariant I9)."""
BAD = frozenset({FAILED, TIMEOUT, ABANDONED})
"""The final statuses that need attention. Each execution that ends so has an error."""

MOVES: dict[str, frozenset[str]] = {
    REQUESTED: frozenset(
        {QUEUED, SCHEDULED, RUNNING, WAITING, CANCELLED, FAILED, TIMEOUT, SKIPPED}
    ),  # only a workflow becomes RUNNING, and only a waiting task WAITING: no worker claims these
    QUEUED: frozenset({REQUESTED, SCHEDULED, RUNNING, CANCELLED, FAILED, TIMEOUT, SKIPPED}),
    SCHEDULED: frozenset({REQUESTED, RUNNING, CANCELLED, FAILED, TIMEOUT, SKIPPED}),
    RUNNING: frozenset(
        {REQUESTED, WAITING, CANCELING, COMPLETED, FAILED, TIMEOUT, CANCELLED, ABANDONED, SKIPPED}
    ),
    WAITING: frozenset({REQUESTED, RUNNING, COMPLETED, FAILED, TIMEOUT, CANCELLED, SKIPPED}),
    CANCELING: frozenset({CANCELLED, COMPLETED, FAILED, TIMEOUT}),
}
STATUSES = (*MOVES, *sorted(FINAL))
