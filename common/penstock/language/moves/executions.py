"""The statuses of an execution, and its legal moves."""

from __future__ import annotations

REQUESTED = "requested"
"""Wants to run. With `not_before` in the future it waits for that instant (a retry, a delay)."""
QUEUED = "queued"
"""Waits for a slot of a limit, in the `waiter` table, off the scheduling path."""
SCHEDULED = "scheduled"
"""Admitted, and its envelope is on a route."""
RUNNING = "running"
"""A worker owns an attempt of it; or, for a workflow, its tasks are under way."""
WAITING = "waiting"
"""Waits for the answer to an inquiry, or, as a task of a workflow, for an event. No worker holds it."""
CANCELING = "canceling"
"""It was asked to end (somebody cancelled it, its time is over) while a worker has it. It still holds its slot."""
COMPLETED = "completed"
"""Its result is stored."""
FAILED = "failed"
"""Its last attempt raised an error, or it could not be started."""
TIMEOUT = "timeout"
"""An attempt, or all of it, took longer than it may; or it did not start in time."""
CANCELLED = "cancelled"
"""Somebody asked, or a limit refused it."""
ABANDONED = "abandoned"
"""Lost by its workers more often than `max_recoveries` allows."""
SKIPPED = "skipped"
"""A task of a workflow that had no reason to run, or that an operator skipped."""

FINAL = frozenset({COMPLETED, FAILED, TIMEOUT, CANCELLED, ABANDONED, SKIPPED})
"""No attempt will follow, and no final status ever changes (I9)."""
BAD = frozenset({FAILED, TIMEOUT, ABANDONED})
"""Of the final ones, what somebody may want to look at. Whatever ended so has an error."""

MOVES: dict[str, frozenset[str]] = {
    REQUESTED: frozenset(
        {QUEUED, SCHEDULED, RUNNING, WAITING, CANCELLED, FAILED, TIMEOUT, SKIPPED}
    ),  # RUNNING: only a workflow, WAITING: only a task that waits; no worker claims these
    QUEUED: frozenset({REQUESTED, SCHEDULED, RUNNING, CANCELLED, FAILED, TIMEOUT, SKIPPED}),
    SCHEDULED: frozenset({REQUESTED, RUNNING, CANCELLED, FAILED, TIMEOUT, SKIPPED}),
    RUNNING: frozenset(
        {REQUESTED, WAITING, CANCELING, COMPLETED, FAILED, TIMEOUT, CANCELLED, ABANDONED, SKIPPED}
    ),
    WAITING: frozenset({REQUESTED, RUNNING, COMPLETED, FAILED, TIMEOUT, CANCELLED, SKIPPED}),
    CANCELING: frozenset({CANCELLED, COMPLETED, FAILED, TIMEOUT}),
}
STATUSES = (*MOVES, *sorted(FINAL))
