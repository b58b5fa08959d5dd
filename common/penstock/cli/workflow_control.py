"""The commands to running workflows: pause, resume, skip, set-result. A command is stored with its actor and the
reason."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

import typer

from penstock.cli import name_completion
from penstock.cli.arguments import parse_id, parse_value
from penstock.cli.command_runner import ME
from penstock.cli.output import Json, json_line, out
from penstock.cli.server import by_either

RunId = Annotated[
    UUID,
    typer.Argument(
        parser=parse_id,
        help="An execution of a workflow or a durable function.",
        autocompletion=name_completion.open_executions,
    ),
]
Task = Annotated[str, typer.Argument(help="The name of a task or a step that has not ended.")]
Ahead = Annotated[
    bool,
    typer.Option(
        "--ahead",
        help="Also accept a step that the durable function has not requested yet. Without this option such a "
        "step is refused.",
    ),
]
By = Annotated[str, typer.Option(help="The author, stored with the execution.")]
Why = Annotated[str | None, typer.Option("--reason", help="The reason, stored with the execution.")]


def pause(id: RunId, by: By = ME, reason: Why = None, json: Json = False) -> None:
    """Pause the execution of a workflow: no further task starts in it or in workflows inside it. Running attempts
    continue."""
    _command(id, "pause", by, reason, json)


def resume(id: RunId, by: By = ME, reason: Why = None, json: Json = False) -> None:
    """Resume a paused execution. Work that became due during the pause starts."""
    _command(id, "resume", by, reason, json)


def skip(
    id: RunId, task: Task, by: By = ME, reason: Why = None, ahead: Ahead = False, json: Json = False
) -> None:
    """Skip a task, or a step of a durable function, that has not ended."""
    _command(id, "skip", by, reason, json, task, ahead=ahead)


def set_result(
    id: RunId,
    task: Task,
    result: Annotated[str, typer.Argument(help="JSON, or plain text.")],
    by: By = ME,
    reason: Why = None,
    ahead: Ahead = False,
    json: Json = False,
) -> None:
    """Complete a task, or a step of a durable function, that has not ended, with this result."""
    _command(id, "set_result", by, reason, json, task, parse_value(result), ahead=ahead)


def _command(
    id: UUID,
    kind: str,
    by: str,
    reason: str | None,
    json: bool,
    task: str | None = None,
    value: Any = None,
    *,
    ahead: bool = False,
) -> None:
    notice = by_either(
        lambda client: client.command(id, kind, task=task, value=value, by=by, reason=reason, ahead=ahead)
    )
    if json:
        json_line({"id": id, "told": kind, "task": task, "by": by, "notice": notice})
    else:
        if notice is not None:
            out.print(notice, highlight=False, markup=False)
        out.print(f"Requested. See the execution with: penstock show {id}")


def add_to(app: typer.Typer) -> None:
    for command in (pause, resume, skip):
        app.command()(command)
    app.command("set-result")(set_result)
