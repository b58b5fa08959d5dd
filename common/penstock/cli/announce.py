"""The command `penstock announce`, which names the status changes that are announced to other programs."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.cli.command_runner import with_session
from penstock.cli.output import Json, json_line, out
from penstock.errors import InvalidInput
from penstock.store.outbox import announcements as store

Statuses = Annotated[
    list[str] | None,
    typer.Argument(
        help="The names, such as completed failed enforcement.created. Without names, the command prints what is announced."
    ),
]


def announce(
    statuses: Statuses = None,
    off: Annotated[bool, typer.Option("--off", help="Stop all announcements.")] = False,
    json: Json = False,
) -> None:
    """Announce status changes to listening programs. An execution that reaches one of these statuses is announced as
    execution.status.STATUS. With enforcement.created among the names, each match of a rule is announced, too."""
    if off and statuses:
        raise InvalidInput(
            "--off and statuses exclude each other", hint="Give either the names to announce, or --off."
        )
    if off or statuses:
        announced = with_session(lambda session: store.announce(session, statuses or []))
    else:
        announced = with_session(store.announced)
    if json:
        json_line({"announced": announced})
    else:
        out.print(f"Announced: {', '.join(announced)}." if announced else "Nothing is announced.")


def add_to(app: typer.Typer) -> None:
    app.command()(announce)
