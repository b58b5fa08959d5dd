"""How far a run is: each task of its graph with its status and its times, those that have not begun too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from penstock.language.workflows.critical import Span, critical_path
from penstock.language.workflows.graph import Graph, Node
from penstock.moves import COMPLETED, FINAL, RUNNING, SKIPPED

Row = Any

NOT_STARTED = "not started"
PAUSED = "paused"
"""It will run, once the workflow is resumed."""


@dataclass(slots=True)
class TaskProgress:
    """A task of a run. `executions` counts those that it has, by status; `execution` is the only one or the first.
    `inside` are the tasks of the workflow that it runs."""

    name: str
    does: str
    after: list[str]
    status: str
    begun: datetime | None = None
    ended: datetime | None = None
    items: int | None = None
    executions: dict[str, int] = field(default_factory=dict)
    execution: UUID | None = None
    kept: bool = False
    critical: bool = False
    inside: list[TaskProgress] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        whole = {name: getattr(self, name) for name in self.__slots__ if name != "inside"}
        return whole | {"tasks": [task.as_json() for task in self.inside]}


def progress(
    graph: Graph, records: Mapping[int, Row], executions: Sequence[Row], now: datetime, paused: bool = False
) -> list[TaskProgress]:
    """The tasks of a run in the workflow's order. `records` and `executions` as `penstock.store.workflow_runs` gives them."""
    by_task: dict[str, list[Row]] = {}
    for row in executions:
        by_task.setdefault(row["task"], []).append(row)
    found = [
        _task(graph, node, records.get(node.index), by_task.get(node.name, []), paused)
        for node in _all(graph)
    ]
    spans = {
        index: Span(task.begun, task.ended or now)
        for index, task in enumerate(found)
        if task.begun is not None
    }
    passed = frozenset(
        i for i, task in enumerate(found) if task.status in FINAL - {SKIPPED} and i not in spans
    )
    for index in critical_path(graph, spans, passed):
        found[index].critical = True
    return found


def _all(graph: Graph) -> list[Node]:
    return [*graph.nodes, *([graph.exit] if graph.exit is not None else [])]


def _task(graph: Graph, node: Node, record: Row | None, rows: Sequence[Row], paused: bool) -> TaskProgress:
    step = node.step
    does = step.action or step.workflow or ("wait_for_event" if step.wait_for_event else "inquiry")
    found = TaskProgress(node.name, does, [graph[source].name for source in node.sources], NOT_STARTED)
    status = None if record is None else record["status"]
    if record is not None:
        found.items = record["items"]
    if status in FINAL:
        found.status = str(status)
    elif status == "due":
        found.status = PAUSED if paused else "due"
    elif status == "open":
        found.status = RUNNING
    for row in rows:
        found.executions[row["status"]] = found.executions.get(row["status"], 0) + row["count"]
        found.execution = found.execution or row["first"]
    if rows:
        found.begun = min(row["begun"] for row in rows)
        if status in FINAL:
            found.ended = max((row["ended"] for row in rows if row["ended"] is not None), default=None)
        elif found.items is None:
            found.status = rows[0]["status"]
    # What completed in this run has an execution, or the executor itself gave the result.
    found.kept = bool(status == COMPLETED and not rows and record and not record["given"])
    return found
