"""The run of a workflow as a tree of its tasks and of those of the workflows inside it; and the commands that users
sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any
from uuid import UUID

import orjson

from penstock.language.workflows import from_body
from penstock.language.workflows.graph import Graph
from penstock.language.workflows.progress import HELD, PAUSED, TaskExecutions, TaskProgress, progress
from penstock.operate.titles import waits_of
from penstock.store.definitions import catalog
from penstock.store.executions import executions
from penstock.store.executions.executions import Execution
from penstock.store.session import clock
from penstock.store.session.database import Session
from penstock.store.workflows import workflow_runs

DEEPEST = 10
"""The maximum levels of nested workflows that are shown."""


def graph_of(body: Mapping[str, Any] | None) -> Graph | None:
    """Return the graph of a definition; None if it is not a workflow."""
    if body is None or body["kind"] != "workflow":
        return None
    return Graph(from_body({name: value for name, value in body.items() if name != "kind"}))


async def tree(
    session: Session, run: Execution, graph: Graph, ran: Mapping[str, float]
) -> list[TaskProgress]:
    """Return the tasks of a run and, inside them, those of the workflows that they run. `ran` has the seconds that
    each task ran, by name. Tasks that wait for a resume or for the release of a hold are marked, by the rule of lists."""
    open_executions: list[OpenTask] = []
    tasks = await _tree(session, run, graph, ran, open_executions)
    await _mark_stopped(session, open_executions)
    return tasks


OpenTask = tuple[TaskProgress, Sequence[TaskExecutions]]
"""A task, and its executions that have not ended."""


async def _tree(
    session: Session,
    run: Execution,
    graph: Graph,
    ran: Mapping[str, float],
    open_executions: list[OpenTask],
    depth: int = 1,
) -> list[TaskProgress]:
    """Return the tree of tasks, and append the open executions of each task to `open_executions`."""
    executions_of_tasks = await workflow_runs.executions(session, run.id)
    tasks = progress(
        graph,
        await workflow_runs.tasks(session, run.id),
        executions_of_tasks,
        ran,
        await clock.now(session),
        await workflow_runs.is_paused(session, run.id),
        is_rerun="rerun_of" in orjson.loads(run.origin or "{}"),
    )
    groups: dict[str, list[TaskExecutions]] = {}
    for group in executions_of_tasks:
        if group.open:
            groups.setdefault(group.task, []).append(group)
    open_executions += [(task, groups[task.name]) for task in tasks if task.name in groups]
    for task in tasks:
        if depth < DEEPEST and task.execution is not None and task.items is None:
            step = graph[graph.index[task.name]].step
            if step.workflow is not None:
                [row] = await executions.find(session, [task.execution])
                bodies = await catalog.bodies(session, [row.definition_id])
                inner = graph_of(bodies.get(row.definition_id))
                if inner is not None:
                    _, inside = await workflow_runs.ran(session, row)
                    task.inside = await _tree(session, row, inner, inside, open_executions, depth + 1)
    return tasks


async def _mark_stopped(session: Session, open_executions: Sequence[OpenTask]) -> None:
    """Mark the tasks of which every open execution waits for a resume or the release of a hold. Of a task with many items, the
    first open executions of each status decide."""
    statuses = {id: group.status for _, groups in open_executions for group in groups for id in group.open}
    waits, paused = await waits_of(session, statuses)
    for task, groups in open_executions:
        causes = {
            PAUSED if id in paused else wait.because if (wait := waits.get(id)) is not None else None
            for group in groups
            for id in group.open
        }
        task.paused = causes <= {PAUSED, HELD} and PAUSED in causes
        task.held = causes == {HELD}


async def names_inside(session: Session, id: UUID) -> dict[UUID, str]:
    """Return an execution, with an empty name, and all executions inside it. A name consists of the tasks on the path
    to the execution, and its item."""
    names = {id: ""}
    parents: Sequence[UUID] = [id]
    while parents:
        children = await workflow_runs.children(session, parents)
        for child in children:
            task = child.task if child.item < 0 else f"{child.task}[{child.item}]"
            names[child.id] = f"{names[child.parent]}.{task}".removeprefix(".")
        parents = [child.id for child in children]
    return names


async def sent_commands(session: Session, id: UUID) -> list[dict[str, Any]]:
    """Return the commands that users sent to a run."""
    return [asdict(command) for command in await workflow_runs.commands(session, id)]
