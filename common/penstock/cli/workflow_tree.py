"""The output of a workflow's run in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from penstock.cli.output import out, span, table, text

if TYPE_CHECKING:
    from penstock.language.workflows.progress import TaskProgress


def print_tree(tasks: Sequence[TaskProgress], started: datetime) -> None:
    table(
        ["task", "", "status", "started", "duration", "waited", "ran", "executions", "first execution"],
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
        durations = [task.ran for task in path if task.ran is not None]
        ran = f", of which its tasks ran {span(timedelta(seconds=sum(durations)))}" if durations else ""
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
    counts = ", ".join(f"{count} {status}" for status, count in task.executions.items())
    return f"{task.items} items" + (f": {counts}" if counts else "")


def print_sent_commands(commands: Sequence[Mapping[str, Any]]) -> None:
    table(
        ["command", "task", "by", "reason", "at", "result"],
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
