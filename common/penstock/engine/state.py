"""The stored state of a run of a workflow between two decisions: a small state of its own, and a state of each task
that has begun or of which a predecessor has ended. Nothing is stored of all the others: how they stand follows from
the graph.

Tasks are named by their index in the graph. A task's status is one of those below or a final one of an execution.
Fields are stored under their names (`serialization`), and SQL reads some of them: do not rename them.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Literal

from penstock.language.moves import COMPLETED, FINAL, SKIPPED
from penstock.language.workflows.task_trigger_rules import FAILURE, SKIP, SUCCESS

PENDING = "pending"
"""Something before it has ended, and it is not decided yet whether it runs."""
DUE = "due"
"""It will run; it has not started, as the workflow is paused or other starts come first."""
OPEN = "open"
"""It has started: its execution, or those of its items, are under way."""

Phase = Literal["running", "stopping", "exiting", "ended"]
"""Stopping: it was cancelled or timed out, nothing starts, and what is open is on its way out. Exiting: its
exit task runs."""


@dataclass(frozen=True, slots=True)
class KeptTask:
    """A task that a re-run keeps: how it ended in the run before. Its result, and those of its `total` items, are
    stored apart.

    `status` None: of a fan-out that is run again, only items are kept. `items` has a bit for each that completed;
    they are kept if the list of items has the same `digest`. `given`, `result` and `error` are as in TaskState.
    `by_hand`: an operator ended it before it was decided whether it runs."""

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
    """The workflow's own state, of bounded size but for `due`.

    `left` tasks have not ended, `open` of them have started; `unhandled` failures would fail the workflow if
    it ended now. `due` are the tasks with something to start, in order. `faults` are the errors of transitions.
    `outcome` is how the workflow ends, once that is known: a status and an error or None. It was stopped `stops`
    times."""

    left: int
    open: int = 0
    unhandled: int = 0
    phase: Phase = "running"
    paused: bool = False
    due: deque[int] = field(default_factory=deque)
    faults: list[dict[str, Any]] = field(default_factory=list)
    outcome: tuple[str, Any] | None = None
    stops: int = 0


@dataclass(slots=True)
class FanOut:
    """The items of a task. `begun` of `total` were started or kept, in order; `ended` of these have ended, which
    bits of `settled` say one by one, so that no end counts twice. At most `window` run at a time (0: any number).
    `stopped`: no more of them start. `queued`: the task is among those that are due. `digest` is that of the list
    of items."""

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

    @property
    def running(self) -> int:
        return self.begun - self.ended

    @property
    def room(self) -> int:
        """Return the number of executions that may still start now."""
        unstarted = 0 if self.stopped else self.total - self.begun
        return min(unstarted, self.window - self.running) if self.window else unstarted

    def note_end(self, item: int) -> bool:
        """Note that an item has ended. False if that was known."""
        byte, bit = item >> 3, 1 << (item & 7)
        if self.settled[byte] & bit:
            return False
        self.settled[byte] |= bit
        self.ended += 1
        return True


@dataclass(slots=True)
class TaskState:
    """The known state of a task. `success`, `failed` and `skipped` count how the tasks before it ended, until it is
    decided whether it runs.

    `named` holds the outcomes of those tasks before it that its rule names one by one. `runs`: it was decided that
    it runs. `rescues` counts the failed tasks with a failure route that leads here; `routes` are the
    targets of its own failure routes. `handled`: it failed, and it may, or a task that runs because of its failure
    runs. `kept`: in a re-run, how it ended in the run before, until it would start. `given` is set if its result is
    not an execution's: that of `noop`, of an empty list, or one that an operator set.
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
        """Return whether the task failed and no other task handled it (what `Needed.failures` asks for)."""
        return self.final and not self.handled and self.status not in (COMPLETED, SKIPPED)


def outcome_of(status: str, allow_failure: bool) -> str:
    """Return the outcome that an end counts as for the tasks after it."""
    if status == COMPLETED:
        return SUCCESS
    if status == SKIPPED:
        return SKIP
    return SUCCESS if allow_failure else FAILURE
