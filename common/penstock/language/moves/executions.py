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
    REQUESTED: "accepted, and about to be processed, waiting for its start time (a delay or a retry), or on hold until an "
    "operator releases it",
    QUEUED: "not yet sent to its route: a limit or a circuit breaker holds it back, or no live worker can run it",
    SCHEDULED: "waits on its route until a suitable worker with a free slot takes it",
    RUNNING: "a worker runs it; or it is a workflow with open tasks",
    WAITING: f"waits, without a worker, for {WAIT_CAUSES}",
    CANCELING: "being stopped after a cancel or a timeout, while a worker still has it",
    COMPLETED: "succeeded; its result, if any, is stored",
    FAILED: "ended with an error: its last attempt failed, one of its tasks failed, or it could not be started",
    TIMEOUT: "took too long: it exceeded its timeout, it did not start before its expiry, or its answer or event did not come "
    "in time",
    CANCELLED: "ended on request, with its parent, or by a full limit that cancels executions instead of enqueuing them",
    ABANDONED: "given up, because its worker was lost too many times",
    SKIPPED: "a task or step that did not run: its condition, or the outcome of the tasks before it, excluded "
    "it; or an operator skipped it",
}
"""The meaning of each status for people, without its subject. The pages, the API and docs/lifecycle.md have it from here."""
