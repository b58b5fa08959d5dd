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
from penstock.language.workflows.progress import TaskProgress, progress
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
    session: Session, run: Execution, graph: Graph, ran: Mapping[str, float], depth: int = 1
) -> list[TaskProgress]:
    """Return the tasks of a run and, inside them, those of the workflows that they run. `ran` has the seconds that
    each task ran, by name."""
    tasks = progress(
        graph,
        await workflow_runs.tasks(session, run.id),
        await workflow_runs.executions(session, run.id),
        ran,
        await clock.now(session),
        await workflow_runs.is_paused(session, run.id),
        is_rerun="rerun_of" in orjson.loads(run.origin or "{}"),
    )
    for task in tasks:
        if depth < DEEPEST and task.execution is not None and task.items is None:
            step = graph[graph.index[task.name]].step
            if step.workflow is not None:
                [row] = await executions.find(session, [task.execution])
                bodies = await catalog.bodies(session, [row.definition_id])
                inner = graph_of(bodies.get(row.definition_id))
                if inner is not None:
                    _, inside = await workflow_runs.ran(session, row)
                    task.inside = await tree(session, row, inner, inside, depth + 1)
    return tasks


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
