"""The run of a workflow as people look at it: a tree of its tasks, and of those of the workflows inside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from penstock.cli.output import out, span, table, text
from penstock.language.workflows import from_body
from penstock.language.workflows.graph import Graph
from penstock.language.workflows.progress import TaskProgress, progress
from penstock.store import catalog, workflow_runs
from penstock.store.database import Session
from penstock.store.executions import Execution

DEEPEST = 10
"""Levels of workflows inside workflows that are shown."""


async def graph_of(session: Session, definition: int) -> Graph | None:
    """The graph of this version; None if it is no workflow's."""
    body = (await catalog.bodies(session, [definition])).get(definition)
    if body is None or body["kind"] != "workflow":
        return None
    return Graph(from_body({name: value for name, value in body.items() if name != "kind"}))


async def tree(session: Session, run: Execution, graph: Graph, depth: int = 1) -> list[TaskProgress]:
    """The tasks of a run, and inside them those of the workflows that they run."""
    from penstock.store import executions

    found = progress(
        graph,
        await workflow_runs.tasks(session, run.id),
        await workflow_runs.executions(session, run.id),
        await workflow_runs.ran(session, run),
        datetime.now(UTC),
        await workflow_runs.is_paused(session, run.id),
    )
    for task in found:
        if depth < DEEPEST and task.execution is not None and task.items is None:
            step = graph[graph.index[task.name]].step
            if step.workflow is not None:
                [row] = await executions.find(session, [task.execution])
                inner = await graph_of(session, row.definition_id)
                if inner is not None:
                    task.inside = await tree(session, row, inner, depth + 1)
    return found


async def sent_commands(session: Session, id: UUID) -> list[dict[str, Any]]:
    """What people told a run."""
    return [asdict(command) for command in await workflow_runs.commands(session, id)]


def print_tree(tasks: Sequence[TaskProgress], started: datetime) -> None:
    table(
        ["task", "", "status", "began", "took", "waited", "ran", "executions", "the first"],
        [
            (
                branch + task.name,
                "*" if task.critical else "",
                task.status,
                "" if task.begun is None else f"+{span(task.begun - started)}",
                "" if task.begun is None else span((task.ended or datetime.now(UTC)) - task.begun),
                "" if task.waited is None else span(timedelta(seconds=task.waited)),
                "" if task.ran is None else span(timedelta(seconds=task.ran)),
                _executions(task),
                task.execution,
            )
            for branch, task in _branches(tasks, "")
        ],
    )
    path = [task for task in tasks if task.critical]
    if path:
        length = (path[-1].ended or datetime.now(UTC)) - (path[0].begun or started)
        names = " > ".join(task.name for task in path)
        known = [task.ran for task in path if task.ran is not None]
        ran = f", of which its tasks ran {span(timedelta(seconds=sum(known)))}" if known else ""
        out.print(f"[dim]* critical path, {span(length)}{ran}:[/dim] {text(names)}")


def _branches(tasks: Sequence[TaskProgress], indent: str) -> Iterator[tuple[str, TaskProgress]]:
    for number, task in enumerate(tasks, 1):
        last = number == len(tasks)
        yield indent + ("└─ " if last else "├─ "), task
        yield from _branches(task.inside, indent + ("   " if last else "│  "))


def _executions(task: TaskProgress) -> str:
    if task.kept:
        return "kept"
    if task.items is None:
        return ""
    ended = ", ".join(f"{count} {status}" for status, count in task.executions.items())
    return f"{task.items} items" + (f": {ended}" if ended else "")


def print_sent_commands(commands: Sequence[Mapping[str, Any]]) -> None:
    table(
        ["told", "task", "by", "why", "at", "came of it"],
        [
            (
                c["kind"].replace("_", "-"),
                c["task"],
                c["by"],
                c["reason"],
                c["created_at"],
                _outcome(c),
            )
            for c in commands
        ],
    )


def _outcome(command: Mapping[str, Any]) -> str:
    if command["kind"] == "rerun":
        return str(command["value"]["as"])
    if command["error"]:
        return f"refused: {command['error']}"
    return "done" if command["obeyed_at"] else "not yet"
