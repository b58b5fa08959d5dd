"""The command `penstock complete`, which ends a wait for an outside system by hand."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import typer

from penstock.cli import name_completion
from penstock.cli.arguments import parse_id, parse_value
from penstock.cli.command_runner import ME
from penstock.cli.output import Json, json_line, out
from penstock.cli.server import by_either
from penstock.errors import InvalidInput


def complete(
    id: Annotated[
        UUID,
        typer.Argument(
            parser=parse_id,
            help="An execution that waits for an outside system (`later`).",
            autocompletion=name_completion.open_executions,
        ),
    ],
    result: Annotated[
        str | None, typer.Option(help="The result of the execution: JSON, or plain text.")
    ] = None,
    error: Annotated[
        str | None,
        typer.Option(
            help="The error of the attempt. The retry policy decides whether another attempt follows."
        ),
    ] = None,
    by: Annotated[str, typer.Option(help="The author, stored with the attempt.")] = ME,
    json: Json = False,
) -> None:
    """End the wait of an execution for an outside system, with a result or an error."""
    if (result is None) == (error is None):
        raise InvalidInput(
            "an outcome has either a result or an error", hint="Give --result JSON, or --error TEXT."
        )
    value = None if result is None else parse_value(result)
    by_either(lambda client: client.complete(id, result=value, error=error, by=by))
    if json:
        json_line({"id": id, "outcome": "error" if result is None else "result", "by": by})
    else:
        out.print(f"The wait is over. See the execution with: penstock show {id}", highlight=False)


def add_to(app: typer.Typer) -> None:
    app.command()(complete)
