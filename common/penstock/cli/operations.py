"""The commands for operators: check, repair, workers list, show, cordon and uncordon."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Annotated, Any

import orjson
import typer

from penstock.cli import name_completion
from penstock.cli.command_runner import with_parts, with_session
from penstock.cli.output import Json, err, fields, json_line, listing, out, span, table
from penstock.cli.server import read
from penstock.language.moves.processes import DEAD
from penstock.language.terms import labels
from penstock.operate import check as checks
from penstock.operate import repair as repairs
from penstock.operate.why.answer import count
from penstock.store.processes.processes import Process

workers = typer.Typer(help="List, show, cordon and uncordon workers.", no_args_is_help=True)


def check(json: Json = False) -> None:
    """Check every invariant on the live database. Exit code 1 if one is violated."""
    findings = with_session(checks.check)
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


def repair(
    apply: Annotated[
        bool,
        typer.Option("--apply", help="Make the repairs. Without this option, the command only prints them."),
    ] = False,
    only: Annotated[
        list[str] | None, typer.Option(help="Only this invariant, as `check --json` calls it.")
    ] = None,
    json: Json = False,
) -> None:
    """Repair what `check` reports, if a harmless repair exists. Exit code 1 while an invariant is violated."""
    findings = with_parts(
        lambda parts: repairs.repair(parts.database.session(), parts.publisher, apply=apply, only=only or ())
    )
    if json:
        for finding in findings:
            json_line(asdict(finding))
    else:
        table(
            ["", "invariant", "violations", "mended", "what to do"],
            [
                (
                    finding.state,
                    f"{finding.name}: {finding.says}",
                    ", ".join(finding.violations[:5]),
                    finding.mended,
                    finding.does,
                )
                for finding in findings
            ],
            empty="No invariant is violated: there is nothing to repair.",
        )
    if any(finding.state == "proposed" for finding in findings):
        err.print("Nothing was changed. Make the repairs with: penstock repair --apply")
    if any(finding.violations for finding in findings):
        raise typer.Exit(1)


@workers.command("list")
def list_workers(
    all: Annotated[bool, typer.Option("--all", help="Include the dead.")] = False, json: Json = False
) -> None:
    """List the live executors and workers, by their heartbeats."""
    processes = read(lambda client: client.workers.all())
    rows = [process for process in processes if all or process.state != DEAD]
    listing(
        ["name", "kind", "state", "routes", "labels", "in use", "slots", "sdk", "last heartbeat"],
        rows,
        lambda p: (
            p.name,
            p.kind,
            p.state,
            p.routes,
            labels.format_labels(orjson.loads(p.labels)),
            p.held,
            p.concurrency,
            p.sdk,
            f"{span(p.age)} ago",
        ),
        json=json,
        document=_document,
        empty="No process is online. Start one with `penstock executor`, `penstock worker` or `penstock dev`.",
    )
    if rows and not json:
        err.print(
            "[dim]In use: as of the last heartbeat. What runs now: penstock executions --status running[/dim]"
        )
    if len(rows) < len(processes) and not json:
        dead = count(len(processes) - len(rows), "dead process", "dead processes")
        err.print(f"[dim]Not listed: {dead}. See all with: penstock workers list --all[/dim]")


def _document(process: Process) -> dict[str, Any]:
    return {
        **asdict(process),
        "labels": orjson.loads(process.labels),
        "executors": orjson.loads(process.executors),
    }


@workers.command()
def show(
    name: Annotated[
        str, typer.Argument(help="The name of a worker.", autocompletion=name_completion.workers)
    ],
    json: Json = False,
) -> None:
    """Show a worker, by its last heartbeat: what it serves and runs, and the state of its task executors."""
    rows = read(lambda client: client.workers.named(name))
    for process in map(_document, rows):
        if json:
            json_line(process)
            continue
        fields(
            {
                "worker": process["name"],
                "id": process["id"],
                "state": process["state"],
                "routes": process["routes"],
                "labels": labels.format_labels(process["labels"]) or None,
                "holds": f"{process['held']} of {process['concurrency']}",
                "language": process["language"],
                "sdk": process["sdk"],
                "last heartbeat": f"{span(process['age'])} ago",
                "actions": process["actions"],
            }
        )
        table(
            ["task executor", "active", "available", "executed", "failed", "cancelled", "average", "leaked"],
            [
                (
                    executor,
                    *(n[kind] for kind in ("active", "available", "executed", "failed", "cancelled")),
                    span(timedelta(seconds=n["average_duration"])) if n["executed"] else None,
                    n["leaked"],
                )
                for executor, n in process["executors"].items()
            ],
            empty="The worker has not reported its task executors yet.",
        )


Names = Annotated[list[str], typer.Argument(help="Names of workers.", autocompletion=name_completion.workers)]


@workers.command()
def cordon(names: Names, json: Json = False) -> None:
    """Cordon workers, so that they take no new work. Running work goes on."""
    done = read(lambda client: client.workers.cordon(names, True))
    if json:
        json_line({"cordoned": done})
    else:
        out.print(f"Cordoned: {', '.join(done)}. They stop taking work with their next heartbeat.")


@workers.command()
def uncordon(names: Names, json: Json = False) -> None:
    """Uncordon workers, so that they take new work again."""
    done = read(lambda client: client.workers.cordon(names, False))
    if json:
        json_line({"in_service": done})
    else:
        out.print(f"Back in service: {', '.join(done)}.")


def add_to(app: typer.Typer) -> None:
    app.command()(check)
    app.command()(repair)
    app.add_typer(workers, name="workers")
