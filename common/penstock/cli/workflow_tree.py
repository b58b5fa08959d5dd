"""The output of a workflow's run in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from penstock.cli.output import out, span, table, text

if TYPE_CHECKING:
    from penstock.language.workflows.progress import TaskProgress

MAX_REASONS = 10
"""The maximum number of skipped tasks of which the reason is printed."""


def print_tree(tasks: Sequence[TaskProgress], started: datetime) -> None:
    table(
        ["task", "", "status", "started", "duration", "waited", "ran", "executions", "first execution"],
        [
            (
                branch + task.name,
                "*" if task.critical else "",
                _status(task),
                "" if task.begun is None else f"+{span(task.begun - started)}",
                "" if (duration := _duration(task)) is None else span(duration),
                "" if task.waited is None else span(timedelta(seconds=task.waited)),
                "" if task.ran is None else span(timedelta(seconds=task.ran)),
                _executions(task),
                task.execution,
            )
            for branch, task in _branches(tasks, "")
        ],
    )
    reasons = [(task.name, task.skipped_because) for _, task in _branches(tasks, "") if task.skipped_because]
    for name, reason in reasons[:MAX_REASONS]:
        out.print(f"[dim]{text(name)} was skipped:[/dim] {text(reason)}")
    if len(reasons) > MAX_REASONS:
        out.print(f"[dim]{len(reasons) - MAX_REASONS} more tasks were skipped[/dim]")
    path = [task for task in tasks if task.critical]
    if path:
        last_begun = path[-1].begun or started
        length = last_begun + (_duration(path[-1]) or timedelta(0)) - (path[0].begun or started)
        names = " > ".join(task.name for task in path)
        durations = [task.ran for task in path if task.ran is not None]
        ran = f", of which its tasks ran {span(timedelta(seconds=sum(durations)))}" if durations else ""
        out.print(f"[dim]* critical path, {span(length)}{ran}:[/dim] {text(names)}")


def _status(task: TaskProgress) -> str:
    """Return the status of a task, and that it is paused or held."""
    return ", ".join(dict.fromkeys((task.status, task.shown_status)))


def _duration(task: TaskProgress) -> timedelta | None:
    """Return how long a task has lasted, on the database's clock; None if that is not known."""
    if task.begun is not None and task.ended is not None:
        return task.ended - task.begun
    if task.waited is None or task.ran is None:
        return None
    return timedelta(seconds=task.waited + task.ran)


def _branches(tasks: Sequence[TaskProgress], indent: str) -> Iterator[tuple[str, TaskProgress]]:
    for number, task in enumerate(tasks, 1):
        last = number == len(tasks)
        yield indent + ("└─ " if last else "├─ "), task
        yield from _branches(task.inside, indent + ("   " if last else "│  "))


def _executions(task: TaskProgress) -> str:
    if task.kept:
        return "kept"
    if task.items is None:
        return "not stored any more" if task.dropped else ""
    counts = ", ".join(f"{count} {status}" for status, count in task.executions.items())
    if task.dropped:
        counts = ", ".join(filter(None, (counts, f"{task.dropped} not stored any more")))
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
