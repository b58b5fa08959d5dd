"""The commands `penstock hold`, `release` and `holds`."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from penstock.cli.arguments import parse_duration
from penstock.cli.command_runner import ME
from penstock.cli.output import Json, json_line, listing, out
from penstock.cli.server import by_either, now, read

Kind = Annotated[str, typer.Argument(help="The kind of the name: action, pack, route or tenant.")]
Name = Annotated[str, typer.Argument(help="Its name, such as shop.charge or shop.")]


def hold(
    kind: Kind,
    name: Name,
    reason: Annotated[
        str | None, typer.Option("--reason", help="The reason, shown with each held execution.")
    ] = None,
    for_: Annotated[
        str | None, typer.Option("--for", help="The duration: 30m, 2h, 1d. By default until it is released.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Hold a name that has no definition and no execution yet.")
    ] = False,
    by: Annotated[str, typer.Option(help="The author, stored with the hold.")] = ME,
    json: Json = False,
) -> None:
    """Hold an action or workflow, a pack, a route or a tenant: the executions that it covers are stored, and no worker
    runs them. Running executions go on."""
    until = None if for_ is None else now() + timedelta(seconds=parse_duration("--for", for_))
    by_either(lambda client: client.holds.hold(kind, name, by=by, reason=reason, until=until, force=force))
    if json:
        json_line({"kind": kind, "name": name, "until": until})
    else:
        out.print(
            f"The {kind} {name} is held. Release it with: penstock release {kind} {name}", highlight=False
        )


def release(
    kind: Kind,
    name: Name,
    rate: Annotated[
        str | None, typer.Option(help="The rate of starts, such as 10/min. By default all start at once.")
    ] = None,
    json: Json = False,
) -> None:
    """Release held executions: at once, or at a rate."""
    by_either(lambda client: client.holds.release(kind, name, rate))
    if json:
        json_line({"kind": kind, "name": name, "rate": rate})
    else:
        out.print(f"The {kind} {name} is released{f' at {rate}' if rate else ''}.", highlight=False)


def holds(json: Json = False) -> None:
    """List the holds, each with the number of executions that wait."""
    rows = read(lambda client: client.holds.all())
    listing(
        ["held", "name", "since", "until", "by", "reason", "released at", "waiting"],
        rows,
        lambda row: (
            row.kind,
            row.name,
            row.since,
            row.until,
            row.by,
            row.reason,
            f"{row.rate_count} in {row.rate_seconds:g} s" if row.rate_count else None,
            row.held,
        ),
        json=json,
        empty="Nothing is held. To hold something: penstock hold pack shop",
    )


def add_to(app: typer.Typer) -> None:
    for command in (hold, release, holds):
        app.command()(command)
