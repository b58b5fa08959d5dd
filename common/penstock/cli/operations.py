"""Commands for operators: check, workers list, cordon and uncordon."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock import invariants
from penstock.cli.output import Json, err, json_line, out, span, table
from penstock.cli.running import with_session
from penstock.errors import NotFound
from penstock.store import processes

workers = typer.Typer(help="List workers, take them out of service and back.", no_args_is_help=True)


def check(json: Json = False) -> None:
    """Check every invariant on the live database. Exit code 1 when one is violated."""
    findings = with_session(invariants.check)
    if json:
        for finding in findings:
            json_line({"invariant": finding.name, "violations": finding.violations, "says": finding.says})
    else:
        table(
            ["", "invariant", "violations"],
            [
                ("ok" if not f.violations else "VIOLATED", f.says, ", ".join(f.violations[:5]))
                for f in findings
            ],
        )
    broken = [finding for finding in findings if finding.violations]
    if broken:
        err.print(f"[red]{len(broken)} invariants are violated.[/red]")
        raise typer.Exit(1)


@workers.command("list")
def list_workers(json: Json = False) -> None:
    """Executors and workers that live, as their heartbeats say."""
    rows = with_session(processes.all)
    if json:
        for row in rows:
            json_line(dict(row))
        return
    table(
        ["name", "kind", "state", "routes", "holds", "slots", "last heartbeat"],
        [
            (
                r["name"],
                r["kind"],
                r["state"],
                r["routes"],
                r["held"],
                r["concurrency"],
                f"{span(r['age'])} ago",
            )
            for r in rows
        ],
        empty="Nobody lives here. Start one with `penstock executor`, `penstock worker` or `penstock dev`.",
    )


Names = Annotated[list[str], typer.Argument(help="Names of workers.")]


@workers.command()
def cordon(names: Names, json: Json = False) -> None:
    """Let workers take no new work. What runs goes on."""
    done = with_session(lambda session: processes.cordon(session, names))
    if not done:
        raise NotFound("no active worker of that name", hint="`penstock workers list` shows them.")
    if json:
        json_line({"cordoned": done})
    else:
        out.print(f"Cordoned: {', '.join(done)}. They stop taking work with their next heartbeat.")


@workers.command()
def uncordon(names: Names, json: Json = False) -> None:
    """Let workers take work again."""
    done = with_session(lambda session: processes.uncordon(session, names))
    if not done:
        raise NotFound("no cordoned worker of that name", hint="`penstock workers list` shows them.")
    if json:
        json_line({"in_service": done})
    else:
        out.print(f"Back in service: {', '.join(done)}.")


def add_to(app: typer.Typer) -> None:
    app.command()(check)
    app.add_typer(workers, name="workers")
