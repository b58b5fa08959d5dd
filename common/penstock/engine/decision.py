"""The outcome of one decision. The caller writes all of it in one transaction."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from penstock.engine.state import TaskState, WorkflowState
from penstock.language.workflows.task import Step


@dataclass(frozen=True, slots=True)
class ChildEnded:
    """The execution of a task has ended, or of one of its items. `status` is final. Results are not in it; they are
    asked for if an expression uses them."""

    task: int
    status: str
    item: int | None = None


@dataclass(frozen=True, slots=True)
class Start:
    """An execution to create, once for each (workflow, task, item). `delay` is in seconds.

    `step.kind` is action, workflow, event or inquiry. `body` is the input of an action or sub-workflow; for
    an inquiry its prompt, assignee, default; for an event its `filter` and the values that this uses
    (`bound`). Everything else is in `step`."""

    task: int
    name: str
    item: int | None
    step: Step
    body: dict[str, Any]
    delay: float = 0.0
    route: str | None = None


class Published(NamedTuple):
    """A variable got a value. `writer` is a task, or WORKFLOW."""

    writer: int
    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class Final:
    """The end of the workflow. `error` is None only if `status` is completed."""

    status: str
    output: Any = None
    error: dict[str, Any] | None = None


@dataclass(slots=True)
class Decision:
    """The new state and what to do about it.

    `tasks` are the states that changed. `store_items` are lists of items of which some start later: store them
    where `Needed.items` is answered from. `cancel` are tasks with open executions to be cancelled,
    `cancel_all` means every open one. `more_due`: there is more to start than one decision does; advance once
    more, with nothing that ended, soon. `forget_kept` are tasks of a re-run with other items now: their
    results of the run before are to be deleted. `final` is set once, when the workflow ends.
    """

    state: WorkflowState
    tasks: dict[int, TaskState] = field(default_factory=dict)
    starts: list[Start] = field(default_factory=list)
    published: list[Published] = field(default_factory=list)
    store_items: dict[int, list[Any]] = field(default_factory=dict)
    cancel: set[int] = field(default_factory=set)
    cancel_all: bool = False
    forget_kept: set[int] = field(default_factory=set)
    more_due: bool = False
    final: Final | None = None
