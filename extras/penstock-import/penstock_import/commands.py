"""The commands `penstock import`, which turn the definitions of another system into a project, with a list of what is
left to do by hand. Penstock finds them through the entry point `import` of the group `penstock.commands`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.output import Json, json_line, out
from penstock.errors import Conflict

if TYPE_CHECKING:
    from penstock_import.cloaca import CloacaModule
    from penstock_import.project import Project
    from penstock_import.report import Report

app = typer.Typer()
Into = Annotated[
    Path | None,
    typer.Option(help="The folder to create. Default: a folder with the pack's name, in the current folder."),
]


@app.callback(no_args_is_help=True, rich_help_panel="Run Penstock")
def projects() -> None:
    """Import a project of another system."""


@app.command()
def stackstorm(
    pack: Annotated[Path, typer.Argument(help="The folder of one pack of StackStorm.")],
    into: Into = None,
    timezone: Annotated[
        str,
        typer.Option(help="The time zone of StackStorm's machine, for timers without a zone."),
    ] = "UTC",
    json: Json = False,
) -> None:
    """Import a pack of StackStorm: actions, triggers, rules, Orquesta workflows and action chains.
    IMPORT.md lists what is left to do by hand."""
    from penstock_import.stackstorm import StackStormPack

    source = StackStormPack(pack, timezone)
    _write_applicable(
        source.mapped(), source.report, f"the pack {pack.resolve().name} of StackStorm", into, json
    )


@app.command()
def celery(
    module: Annotated[Path, typer.Argument(help="A Python file with tasks, or the folder of a package.")],
    into: Into = None,
    json: Json = False,
) -> None:
    """Import Celery tasks with their retries and routes, and the schedule of beat. The source is read and not run.
    IMPORT.md lists what is left to do by hand."""
    from penstock_import.celery import CeleryProject

    source = CeleryProject(module)
    _write_applicable(
        source.mapped(), source.report, f"{module.name or module.resolve().name} of Celery", into, json
    )


@app.command()
def openapi(
    source: Annotated[str, typer.Argument(help="The path or the URL of an OpenAPI 3 document.")],
    into: Into = None,
    server: Annotated[
        str | None,
        typer.Option(help="The server to call instead of the document's: https://api.example.org."),
    ] = None,
    secret: Annotated[
        str | None,
        typer.Option(
            help="The stored secret that authorizes calls; by default the secret with the pack's name."
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="The ids or tags of the operations to import, such as 'issues/*'. May be repeated."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Import the operations of an OpenAPI document as HTTP actions with typed parameters.
    IMPORT.md lists what is left to do by hand."""
    from penstock_import.openapi import OpenApiDocument

    document = OpenApiDocument(
        source, name=into.name if into is not None else None, server=server, secret=secret, only=only or ()
    )
    _write_applicable(document.mapped(), document.report, f"the OpenAPI document {source}", into, json)


@app.command()
def cloaca(
    file: Annotated[Path, typer.Argument(help="A Python file with tasks of Cloacina.")],
    into: Into = None,
    json: Json = False,
) -> None:
    """Import tasks of Cloacina with their rules and retries, workflows and cron schedules. The file is read and not
    run. IMPORT.md lists what is left to do by hand."""
    from penstock_import.cloaca import CloacaFile

    source = CloacaFile(file)
    module = source.mapped()
    _write(module, source.report, f"{file.name} of Cloacina", into, json, module.file)


@app.command()
def attune(
    pack: Annotated[Path, typer.Argument(help="The folder of one pack of Attune.")],
    into: Into = None,
    json: Json = False,
) -> None:
    """Import a pack of Attune: actions, workflows, rules, policies, sensors and triggers. IMPORT.md lists what is left
    to do by hand."""
    from penstock_import.attune import AttunePack

    source = AttunePack(pack)
    _write_applicable(source.mapped(), source.report, f"the pack {pack.resolve().name} of Attune", into, json)


def _write_applicable(project: Project, report: Report, named: str, into: Path | None, json: bool) -> None:
    from penstock_import.applied import keep_applicable

    keep_applicable(project, report)
    _write(project, report, named, into, json)


def _write(
    project: Project | CloacaModule, report: Report, named: str, into: Path | None, json: bool, file: str = ""
) -> None:
    """Write the project, and print the counts of the report. `file` is what `penstock lint` takes, if not the folder."""
    folder = into or Path(project.name)
    if folder.exists() and any(folder.iterdir()):
        raise Conflict(
            f"the folder {folder} exists already, and is not empty",
            hint="Choose another folder: --into FOLDER.",
        )
    project.write(folder, named, report)
    if json:
        applied = {"applied": report.applied} if report.is_checked else {}
        json_line(
            {
                "folder": str(folder),
                "found": report.found,
                "mapped": report.mapped,
                **applied,
                "gaps": len(report.gaps),
            }
        )
        return
    for kind, number in report.found.items():
        apply = f", {report.applied[kind]} apply" if kind in report.applied else ""
        out.print(f"{report.mapped[kind]} of {number} {kind} need no work by hand{apply}", highlight=False)
    out.print(
        f"{folder} is written. Gaps to close by hand, listed in {folder / 'IMPORT.md'}: {len(report.gaps)}.",
        highlight=False,
    )
    out.print(f"    penstock lint {folder / file}", highlight=False)
