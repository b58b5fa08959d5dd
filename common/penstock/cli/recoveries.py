"""The command `penstock recoveries`, which lists work that was lost with a worker or a message, and recovered."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

import typer

from penstock.cli import execution_filter as of
from penstock.cli.output import Json, age, json_line, table
from penstock.cli.server import read
from penstock.client.http_client import HttpClient
from penstock.store.executions import recoveries as store
from penstock.store.session.database import Session

DEFAULT = timedelta(days=1)


def recoveries(
    since: of.Since = None,
    kind: Annotated[
        Literal["attempt", "fire"] | None,
        typer.Option(help="attempt (lost with its worker) or fire (of a schedule)."),
    ] = None,
    worker: Annotated[str | None, typer.Option(help="Only what was lost with this worker.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="The maximum number to list.")] = 50,
    json: Json = False,
) -> None:
    """List recovered losses, the newest first; by default those of one day."""
    begin = of.instant("--since", since) or datetime.now(UTC) - DEFAULT

    async def here(session: Session) -> list[dict[str, Any]]:
        rows = await store.newest(session, begin, kind=kind, worker=worker, limit=limit)
        return [asdict(row) for row in rows]

    async def there(client: HttpClient) -> list[dict[str, Any]]:
        query = {"since": begin.isoformat(), "kind": kind, "worker": worker, "limit": limit}
        rows: list[dict[str, Any]] = await client.get_json("/recoveries", **query)
        return [{**row, "at": datetime.fromisoformat(row["at"])} for row in rows]

    rows = read(here, there)
    if json:
        for row in rows:
            json_line(row)
        return
    columns = ("execution", "subject", "number", "worker", "status", "why")
    table(
        ["kind", "age", *columns],
        [(row["kind"], age(row["at"]), *(row[name] for name in columns)) for row in rows],
        empty="Nothing was lost.",
    )


def add_to(app: typer.Typer) -> None:
    app.command()(recoveries)
