"""The statuses of an execution, and its legal moves."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.language.terms.waits import WAIT_CAUSES

REQUESTED = "requested"
"""The start time, if the execution has one, is in `not_before`."""
QUEUED = "queued"
"""It stands in the table `waiter`, off the scheduling path."""
SCHEDULED = "scheduled"
"""It is admitted, and its envelope is in the queue of the route."""
RUNNING = "running"
"""The worker of an action has claimed an attempt of it."""
WAITING = "waiting"
"""It gives its slots back meanwhile, unless a limit has `while_waiting: keep`."""
CANCELING = "canceling"
"""It still holds its slot."""
COMPLETED = "completed"
"""No other final status has a result."""
FAILED = "failed"
"""Its error is stored."""
TIMEOUT = "timeout"
"""The exceeded timeout is the one of an attempt or of the whole execution."""
CANCELLED = "cancelled"
"""The reason is in its history."""
ABANDONED = "abandoned"
"""`max_recoveries` bounds the losses."""
SKIPPED = "skipped"
"""Its workflow goes on."""

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

MEANINGS: Mapping[str, str] = {
    REQUESTED: "just created, not due yet (a delay or a retry), paused or on hold",
    QUEUED: "waits for a limit, for a circuit breaker, or for the start of a worker that can run it",
    SCHEDULED: "waits for a free slot of a worker that can run it",
    RUNNING: "a worker runs it, or it is a workflow with open tasks",
    WAITING: f"waits for {WAIT_CAUSES}, without occupying a worker",
    CANCELING: "cancelled or timed out, but its worker has not stopped it yet",
    COMPLETED: "ended with success",
    FAILED: "ended with an error: its last attempt failed, one of its tasks failed, or it could not be started",
    TIMEOUT: "ran out of time: it exceeded its timeout, expired before its start, or got no answer or event in time",
    CANCELLED: "ended early: on request, because its parent ended, or because a limit was full",
    ABANDONED: "ended without a result, because its workers were lost too many times",
    SKIPPED: "did not run: its condition was false, an earlier task did not end as required, or an operator skipped it",
}
"""The meaning of each status for people, without its subject. The pages, the API and docs/lifecycle.md have it from here."""
