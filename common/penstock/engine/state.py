"""The stored state of a run of a workflow between two decisions: a small state of the workflow itself, and a state of
each task that was reached. A task is reached when it begins or when a predecessor ends.

Tasks are named by their index in the graph. A task's status is PENDING, DUE, OPEN or a final status of an execution.
Fields are stored under their names (`serialization`), and SQL reads some of them: do not rename them.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Literal

from penstock.language.moves import COMPLETED, FINAL, SKIPPED
from penstock.language.workflows.task_trigger_rules import FAILURE, SKIP, SUCCESS

PENDING = "pending"
"""A task before this one has ended, and it is not decided yet whether this one runs."""
DUE = "due"
"""The task will run. It has not started, as the workflow is paused or other starts come first."""
OPEN = "open"
"""The task has started: its execution, or some of its items' executions, have not ended."""

Phase = Literal["running", "stopping", "exiting", "ended"]
"""The phase of a workflow. stopping: it was cancelled or timed out, nothing starts, and open executions are being
cancelled. exiting: its exit task is due or runs."""


@dataclass(frozen=True, slots=True)
class KeptTask:
    """A task of the run before that keeps its end in a re-run. Its result, and those of its `total` items, are stored
    separately.

    `status` is None for a fan-out that runs again and keeps only items. `items` has a bit for each completed item. The
    items are kept if the item list still has the same `digest`. `given`, `result` and `error` are as in TaskState.
    `by_hand`: an operator skipped or completed the task before it was decided whether it runs.
    """

    status: str | None
    items: bytes = b""
    total: int | None = None
    digest: str = ""
    given: bool = False
    by_hand: bool = False
    result: Any = None
    error: Any = None


@dataclass(slots=True)
class WorkflowState:
    """The workflow's own state. Its size is bounded, except for `due`.

    `left` tasks have not ended, and `open` tasks have started and not ended. `unhandled` counts the failures that
    would fail the workflow if it ended now. `due` are the tasks with something to start, in order. `faults` are the
    errors of transitions. `outcome` is the status and error (or None) with which the workflow ends, once known.
    `stops` counts the requests to stop. `failures` are the first tasks with an unhandled failure, in the order of time.
    """

    left: int
    open: int = 0
    unhandled: int = 0
    phase: Phase = "running"
    paused: bool = False
    due: deque[int] = field(default_factory=deque)
    faults: list[dict[str, Any]] = field(default_factory=list)
    outcome: tuple[str, Any] | None = None
    stops: int = 0
    failures: list[int] = field(default_factory=list)


@dataclass(slots=True)
class FanOut:
    """The items of a task. `begun` of `total` items were started or kept, in order. `ended` of these have ended, and
    `settled` has a bit for each, so that no end counts twice.

    At most `window` items run at a time (0: any number). `stopped`: no more items start. `queued`: the task is in the
    workflow's `due`. `digest` is the digest of the item list. `cancelled` of the `failed` items were cancelled because
    other items had failed.
    """

    total: int
    begun: int = 0
    ended: int = 0
    failed: int = 0
    stopped: bool = False
    queued: bool = False
    window: int = 0
    settled: bytearray = field(default_factory=bytearray)
    first_error: Any = None
    digest: str = ""
    cancelled: int = 0

    @property
    def running(self) -> int:
        return self.begun - self.ended

    @property
    def room(self) -> int:
        """Return the number of items that may start now within the window."""
        unstarted = 0 if self.stopped else self.total - self.begun
        return min(unstarted, self.window - self.running) if self.window else unstarted

    def note_end(self, item: int) -> bool:
        """Mark an item as ended. Return False if it was marked already."""
        byte, bit = item >> 3, 1 << (item & 7)
        if self.settled[byte] & bit:
            return False
        self.settled[byte] |= bit
        self.ended += 1
        return True


@dataclass(slots=True)
class TaskState:
    """The stored state of a task. `success`, `failed` and `skipped` count the ends of the tasks before it, until it is
    decided whether it runs.

    `named` has the outcomes of the predecessors that its trigger rule names one by one. `runs`: it was decided that
    the task runs. `rescues` counts failed predecessors with a failure route to this task. `routes` are the targets of
    its own failure routes. `handled`: it failed, and either `allow_failure` permits that or a task runs because of the
    failure. `kept` is its end in the run before, in a re-run, until it would start. `given`: its result is not an
    execution's, but that of `noop`, of an empty list, or of an operator.
    """

    status: str = PENDING
    success: int = 0
    failed: int = 0
    skipped: int = 0
    named: dict[int, str] = field(default_factory=dict)
    runs: bool = False
    rescues: int = 0
    routes: list[int] = field(default_factory=list)
    handled: bool = False
    kept: KeptTask | None = None
    fan: FanOut | None = None
    given: bool = False
    result: Any = None
    error: Any = None

    @property
    def final(self) -> bool:
        return self.status in FINAL

    @property
    def undecided(self) -> bool:
        return self.status == PENDING

    @property
    def arrived(self) -> int:
        return self.success + self.failed + self.skipped

    @property
    def failing(self) -> bool:
        """Return whether the task failed and no other task handled it (see `Needed.failures`)."""
        return self.final and not self.handled and self.status not in (COMPLETED, SKIPPED)


def outcome_of(status: str, allow_failure: bool) -> str:
    """Return the outcome as which an end with this status counts for the tasks after it."""
    if status == COMPLETED:
        return SUCCESS
    if status == SKIPPED:
        return SKIP
    return SUCCESS if allow_failure else FAILURE
