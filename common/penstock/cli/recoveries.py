"""The command `penstock recoveries`, which lists work that was lost with a worker or a message, and recovered."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from penstock.cli import execution_filter as of
from penstock.cli.output import Json, age, listing
from penstock.cli.server import read


def recoveries(
    since: of.LossSince = None,
    kind: Annotated[
        Literal["attempt", "fire"] | None,
        typer.Option(help="attempt (lost with its worker) or fire (of a schedule)."),
    ] = None,
    worker: Annotated[
        str | None, typer.Option(help="Only attempts and fires that were lost with this worker.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="The maximum number to list.")] = 50,
    json: Json = False,
) -> None:
    """List lost attempts and fires that were recovered, newest first. Default: those of the last 24 hours."""
    begin = of.instant("--since", since)
    rows = read(lambda client: client.recoveries(since=begin, kind=kind, worker=worker, limit=limit))
    listing(
        ["kind", "age", "execution", "subject", "number", "worker", "status", "reason"],
        rows,
        lambda r: (r.kind, age(r.at), r.execution, r.subject, r.number, r.worker, r.status, r.why),
        json=json,
        empty="Nothing was lost.",
    )


def add_to(app: typer.Typer) -> None:
    app.command()(recoveries)
