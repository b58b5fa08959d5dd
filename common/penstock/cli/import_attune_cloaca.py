"""`penstock import attune` and `penstock import cloaca`: projects of the systems that Penstock has its vocabulary from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.output import Json, json_line, out
from penstock.errors import Conflict

if TYPE_CHECKING:
    from penstock.cli.imports.attune import AttuneProject
    from penstock.cli.imports.cloaca import CloacaModule
    from penstock.cli.imports.report import Report

Into = Annotated[
    Path | None,
    typer.Option(help="The folder to create; by default one of the pack's name in the current folder."),
]


def cloaca(
    file: Annotated[Path, typer.Argument(help="A Python file with tasks of Cloacina.")],
    into: Into = None,
    json: Json = False,
) -> None:
    """Cloacina: tasks with their rules and retries, workflows and cron schedules. The file is read and not run; IMPORT.md lists
    what is to be done by hand."""
    from penstock.cli.imports.cloaca import CloacaFile

    source = CloacaFile(file)
    _write(source.mapped(), source.report, f"{file.name} of Cloacina", into, json)


def attune(
    pack: Annotated[Path, typer.Argument(help="The folder of one pack of Attune.")],
    into: Into = None,
    json: Json = False,
) -> None:
    """A pack of Attune: actions, workflows, rules, policies, sensors and triggers. IMPORT.md lists what is to be done by hand."""
    from penstock.cli.imports.applied import keep_applicable
    from penstock.cli.imports.attune import AttunePack

    source = AttunePack(pack)
    project = source.mapped()
    keep_applicable(project, source.report)
    _write(project, source.report, f"the pack {pack.resolve().name} of Attune", into, json)


def _write(
    project: AttuneProject | CloacaModule, report: Report, named: str, into: Path | None, json: bool
) -> None:
    folder = into or Path(project.name)
    if folder.exists() and any(folder.iterdir()):
        raise Conflict(f"{folder} is there already, and not empty", hint="Choose another one: --into FOLDER.")
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
        apply = f" need nothing by hand, {report.applied[kind]} apply" if kind in report.applied else ""
        out.print(f"{report.mapped[kind]} of {number} {kind}{apply}", highlight=False)
    out.print(
        f"{folder} is made; {len(report.gaps)} gaps are listed in {folder / 'IMPORT.md'}.", highlight=False
    )
    out.print(f"    penstock lint {folder / project.lintable}", highlight=False)


def add_to(imports: typer.Typer) -> None:
    imports.command()(cloaca)
    imports.command()(attune)
