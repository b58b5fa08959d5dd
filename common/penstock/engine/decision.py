"""The outcome of one decision. The caller writes all of it in one transaction."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from penstock.engine.state import TaskState, WorkflowState
from penstock.language.workflows.task import Step


@dataclass(frozen=True, slots=True)
class ChildEnded:
    """The end of the execution of a task, or of one of its items. `status` is final. The result is not in it: the
    engine asks for results that an expression uses."""

    task: int
    status: str
    item: int | None = None


@dataclass(frozen=True, slots=True)
class Start:
    """An execution to create, once for each (workflow, task, item). `delay` is in seconds.

    `step.kind` is action, workflow, event or inquiry. `body` is the input of an action or sub-workflow; for an inquiry
    its prompt, assignee, default; for an event its `filter` and the values of the names in that filter (`bound`).
    `step` has everything else.
    """

    task: int
    name: str
    item: int | None
    step: Step
    body: dict[str, Any]
    delay: float = 0.0
    route: str | None = None


class Published(NamedTuple):
    """A value that a variable got. `writer` is the index of the task that published it, or WORKFLOW."""

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
    """The new state of a workflow, and the work that a decision asks of the caller.

    `tasks` are the task states that changed. `store_items` are the item lists of fan-outs of which some items start
    later: store them where `Needed.items` is answered from. `cancel` names the tasks with open executions to cancel,
    and `cancel_all` means all tasks. `by_hand`: an operator has requested the end again, so executions that are
    cleaning up are cancelled too. `more_due`: the budget is used up and more tasks are due, so call `advance` again
    soon, without ends. `forget_kept` are re-run tasks with a changed item list: delete their results of the run before.
    `final` is set once, when the workflow ends.
    """

    state: WorkflowState
    tasks: dict[int, TaskState] = field(default_factory=dict)
    starts: list[Start] = field(default_factory=list)
    published: list[Published] = field(default_factory=list)
    store_items: dict[int, list[Any]] = field(default_factory=dict)
    cancel: set[int] = field(default_factory=set)
    cancel_all: bool = False
    by_hand: bool = False
    forget_kept: set[int] = field(default_factory=set)
    more_due: bool = False
    final: Final | None = None
