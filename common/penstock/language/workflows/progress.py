"""The progress of a run: the status and the times of each task of its graph, including tasks that have not begun."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from penstock.language.moves import COMPLETED, FINAL, RUNNING, SKIPPED
from penstock.language.workflows.critical_path import Span, critical_path
from penstock.language.workflows.graph import Graph, Node
from penstock.language.workflows.skip_reason import SkippedTask, skip_reason

NOT_STARTED = "not started"
PAUSED = "paused"
"""The shown status of a task that continues when a workflow is resumed: its own workflow, or one that it runs."""
HELD = "held"
"""The shown status of a task that continues when a hold is released."""


@dataclass(slots=True)
class StoredTask:
    """The stored state of a task of a run. `status` is None while it is pending. `has_own_result`: the executor
    itself set its result. `items` is the number of items of a fan-out. `started_items` of them were started. `skipped` is the
    state of a skipped task."""

    status: str | None
    has_own_result: bool
    items: int | None
    started_items: int
    skipped: SkippedTask | None = None


@dataclass(slots=True)
class TaskExecutions:
    """The executions of a task that have the same status: their number, the first one, and their times. `open` has the ids of
    those that have not ended, or the first of these."""

    task: str
    status: str
    count: int
    first: UUID
    began_at: datetime
    ended_at: datetime | None
    open: Sequence[UUID] = ()


@dataclass(slots=True)
class SentCommand:
    """A command that was sent to a run, or an answer to a question of the run or of one of its tasks."""

    kind: Annotated[str, Field(description="pause, resume, skip, set_result, rerun, reschedule or answer.")]
    task: Annotated[
        str | None,
        Field(description="The task or step that the command is for; null: it is for the whole run."),
    ]
    value: Annotated[
        Any,
        Field(
            description="The value of the command, such as the result of set_result; null: it has none, or it is an answer."
        ),
    ]
    by: str
    reason: str | None
    created_at: datetime
    obeyed_at: Annotated[
        datetime | None,
        Field(
            description="The instant at which the execution followed or refused the command; null: it has not yet."
        ),
    ]
    error: Annotated[
        str | None, Field(description="The reason why the command was refused; null: it was not.")
    ]


@dataclass(slots=True)
class TaskProgress:
    """A task of a run. `executions` counts its executions by status; `execution` is the only or the first one.
    `inside` are the tasks of the workflow that it runs. `dropped` executions are past their retention, and not stored any more.

    `ran` is the time in seconds, since the task began, in which at least one of its executions ran. `waited` is the
    time in which none did (no slot, no worker, a retry that was not due, an inquiry). Both are None if not known.

    `paused`: a workflow has to be resumed before the task continues. `held`: a hold has to be released first. The status is
    that of the executions in both cases, and `shown_status` is `paused` or `held`.

    `skipped_because` is the reason why the task was skipped without an execution. None: it was not, or the reason is not known.
    """

    name: str
    does: str
    after: list[str]
    status: str
    begun: datetime | None = None
    ended: datetime | None = None
    waited: float | None = None
    ran: float | None = None
    items: int | None = None
    executions: dict[str, int] = field(default_factory=dict)
    execution: UUID | None = None
    kept: bool = False
    dropped: int = 0
    critical: bool = False
    paused: bool = False
    held: bool = False
    skipped_because: str | None = None
    inside: list[TaskProgress] = field(default_factory=list)

    @property
    def shown_status(self) -> str:
        """Return the status for people: `paused` or `held`, or else the status of the task."""
        return PAUSED if self.paused else HELD if self.held else self.status

    def as_json(self) -> dict[str, Any]:
        whole = {name: getattr(self, name) for name in self.__slots__ if name != "inside"}
        return whole | {"tasks": [task.as_json() for task in self.inside]}


def progress(
    graph: Graph,
    stored: Mapping[int, StoredTask],
    executions: Sequence[TaskExecutions],
    ran: Mapping[str, float],
    now: datetime,
    paused: bool = False,
    *,
    is_rerun: bool = False,
) -> list[TaskProgress]:
    """Return the tasks of a run in the workflow's order. `stored` is by index in the graph, without the tasks that
    have no stored state. `ran` is the running time in seconds, by the name of the task. `is_rerun`: the run may have kept
    results of a run before."""
    by_task: dict[str, list[TaskExecutions]] = {}
    for group in executions:
        by_task.setdefault(group.task, []).append(group)
    tasks = [
        _task(graph, node, stored.get(node.index), by_task.get(node.name, []), paused, is_rerun)
        for node in _all(graph)
    ]
    statuses = {index: task.status for index, task in stored.items()}
    for node, task in zip(_all(graph), tasks, strict=True):
        state = stored.get(node.index)
        if (
            task.status == SKIPPED
            and task.execution is None
            and state is not None
            and state.skipped is not None
        ):
            task.skipped_because = skip_reason(graph, node, state.skipped, statuses)
    for task in tasks:
        if task.begun is not None and task.name in ran:
            task.ran = ran[task.name]
            task.waited = max(0.0, ((task.ended or now) - task.begun).total_seconds() - task.ran)
    spans = {
        index: Span(task.begun, task.ended or now)
        for index, task in enumerate(tasks)
        if task.begun is not None
    }
    passed = frozenset(
        i for i, task in enumerate(tasks) if task.status in FINAL - {SKIPPED} and i not in spans
    )
    for index in critical_path(graph, spans, passed):
        tasks[index].critical = True
    return tasks


def _all(graph: Graph) -> list[Node]:
    return [*graph.nodes, *([graph.exit] if graph.exit is not None else [])]


def _task(
    graph: Graph,
    node: Node,
    stored: StoredTask | None,
    executions: Sequence[TaskExecutions],
    paused: bool,
    is_rerun: bool,
) -> TaskProgress:
    task = TaskProgress(node.name, node.does, [graph[source].name for source in node.sources], NOT_STARTED)
    status = None if stored is None else stored.status
    if stored is not None:
        task.items = stored.items
    if status in FINAL:
        task.status = str(status)
    elif status == "due":
        task.status = PAUSED if paused else "due"
    elif status == "open":
        task.status = RUNNING
    for group in executions:
        task.executions[group.status] = task.executions.get(group.status, 0) + group.count
        task.execution = task.execution or group.first
    if executions:
        task.begun = min(group.began_at for group in executions)
        if status in FINAL:
            task.ended = max(
                (group.ended_at for group in executions if group.ended_at is not None), default=None
            )
        elif task.items is None:
            task.status = executions[0].status
    if stored is not None and status in FINAL - {SKIPPED} and not stored.has_own_result:
        # A re-run has kept the results that come from no execution of its own. Other runs had these executions once.
        task.kept = is_rerun and status == COMPLETED and not executions
        if not is_rerun:
            started = 1 if stored.items is None else stored.started_items
            task.dropped = max(0, started - sum(group.count for group in executions))
    return task
