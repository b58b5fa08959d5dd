"""The command `penstock enforcements`, which lists the rules that matched events, and the outcomes."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import typer

from penstock.cli import name_completion
from penstock.cli.arguments import parse_id
from penstock.cli.output import Json, age, err, json_line, table
from penstock.cli.server import read


def enforcements(
    rule: Annotated[
        str | None, typer.Option(help="Only enforcements of this rule.", autocompletion=name_completion.rules)
    ] = None,
    event: Annotated[
        UUID | None, typer.Option(parser=parse_id, help="Only enforcements of this event.")
    ] = None,
    status: Annotated[
        str | None, typer.Option(help="Only with this status: created, executed or failed.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="The maximum number to list.")] = 20,
    cursor: Annotated[
        str | None,
        typer.Option(
            "--before",
            help="List only enforcements that are older than this place. Each full list prints its place at the end.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """List the enforcements of the newest events: each is a rule that matched an event, or that could not be evaluated."""
    rows, following = read(
        lambda client: client.enforcements(rule=rule, event=event, status=status, cursor=cursor, limit=limit)
    )
    if json:
        for row in rows:
            json_line(row)
        return
    table(
        ["event", "age", "rule", "status", "execution", "reason"],
        [(r.event, age(r.created_at), r.rule, r.status, r.execution, r.error) for r in rows],
        empty="No enforcement matches this filter.",
    )
    if following is not None:
        err.print(f"[dim]There are more: --before {following}[/dim]")


def add_to(app: typer.Typer) -> None:
    app.command()(enforcements)
