"""The commands `penstock import`, which turn the definitions of another system into a project, with a list of what is
left to do by hand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli import import_attune_cloaca
from penstock.cli.output import Json, json_line, out
from penstock.errors import Conflict

if TYPE_CHECKING:
    from penstock.cli.imports.celery import CeleryProject
    from penstock.cli.imports.openapi import OpenApiDocument
    from penstock.cli.imports.stackstorm import StackStormPack

imports = typer.Typer(no_args_is_help=True, help="Import a project of another system.")
Into = Annotated[
    Path | None,
    typer.Option(help="The folder to create; by default one of the pack's name in the current folder."),
]


@imports.command()
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
    from penstock.cli.imports.stackstorm import StackStormPack

    source = StackStormPack(pack, timezone)
    _write(source, f"the pack {pack.resolve().name} of StackStorm", into, json)


@imports.command()
def celery(
    module: Annotated[Path, typer.Argument(help="A Python file with tasks, or the folder of a package.")],
    into: Into = None,
    json: Json = False,
) -> None:
    """Import Celery tasks with their retries and routes, and the schedule of beat. The source is read and not run.
    IMPORT.md lists what is left to do by hand."""
    from penstock.cli.imports.celery import CeleryProject

    _write(CeleryProject(module), f"{module.name} of Celery", into, json)


@imports.command()
def openapi(
    source: Annotated[str, typer.Argument(help="The path or the URL of an OpenAPI 3 document.")],
    into: Into = None,
    server: Annotated[
        str | None,
        typer.Option(help="The server to call instead of the document's: https://api.example.org."),
    ] = None,
    secret: Annotated[
        str | None,
        typer.Option(help="The stored secret that authorizes calls; by default one named after the pack."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Only operations with this id or tag, such as 'issues/*'. May be repeated."),
    ] = None,
    json: Json = False,
) -> None:
    """Import the operations of an OpenAPI document as HTTP actions with typed parameters.
    IMPORT.md lists what is left to do by hand."""
    from penstock.cli.imports.openapi import OpenApiDocument

    document = OpenApiDocument(
        source, name=into.name if into is not None else None, server=server, secret=secret, only=only or ()
    )
    _write(document, f"the OpenAPI document {source}", into, json)


def _write(
    source: StackStormPack | CeleryProject | OpenApiDocument, named: str, into: Path | None, json: bool
) -> None:
    from penstock.cli.imports.applied import keep_applicable

    project, report = source.mapped(), source.report
    keep_applicable(project, report)
    folder = into or Path(project.name)
    if folder.exists() and any(folder.iterdir()):
        raise Conflict(f"{folder} is there already, and not empty", hint="Choose another one: --into FOLDER.")
    project.write(folder, named, report)
    if json:
        json_line(
            {
                "folder": str(folder),
                "found": report.found,
                "mapped": report.mapped,
                "applied": report.applied,
                "gaps": len(report.gaps),
            }
        )
        return
    for kind, number in report.found.items():
        applied = f", {report.applied[kind]} apply" if kind in report.applied else ""
        out.print(f"{report.mapped[kind]} of {number} {kind} need nothing by hand{applied}", highlight=False)
    out.print(
        f"{folder} is made; {len(report.gaps)} gaps are listed in {folder / 'IMPORT.md'}.", highlight=False
    )
    out.print(f"    penstock lint {folder}", highlight=False)


import_attune_cloaca.add_to(imports)


def add_to(app: typer.Typer) -> None:
    app.add_typer(imports, name="import")
