"""The command `penstock retire`, which takes an action, a workflow or a trigger out of use."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.cli import name_completion
from penstock.cli.command_runner import with_session
from penstock.cli.output import Json, json_line, out
from penstock.operate import retire as retiring


def retire(
    ref: Annotated[
        str,
        typer.Argument(
            help="An action, a workflow or a trigger, such as shop.charge.",
            autocompletion=name_completion.definitions,
        ),
    ],
    undo: Annotated[bool, typer.Option("--undo", help="Bring it back into use.")] = False,
    json: Json = False,
) -> None:
    """Retire a definition. A retired action or workflow starts no new executions, and a retired trigger accepts no events.
    Running work goes on."""
    kinds = with_session(lambda session: retiring.retire(session, ref, undo=undo))
    now = "in use again" if undo else "retired"
    if json:
        json_line({"ref": ref, "kinds": kinds, "is": now})
    else:
        back = "" if undo else f" Bring it back with: penstock retire --undo {ref}"
        out.print(f"{' and '.join(kinds).capitalize()} {ref} is {now}.{back}", highlight=False)


def add_to(app: typer.Typer) -> None:
    app.command()(retire)
