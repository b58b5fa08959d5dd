"""The command `penstock doctor`, which examines an installation."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from penstock.cli.command_runner import run
from penstock.cli.output import Json, err, json_line, out, table
from penstock.client.installation import find_installation
from penstock.service.environment import load


def doctor(
    security: Annotated[
        bool,
        typer.Option(
            "--security",
            help="Check the points of docs/hardening.md instead: TLS, access, keys, roles, tokens.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Examine versions, servers, schema, clocks, partitions and services, and say what to do. Exit code 1 if something
    is bad."""
    from penstock.operate.doctor import Finding, examine  # slow to import
    from penstock.operate.doctor import security as hardening

    async def work() -> list[Finding]:
        is_embedded = load().database_url is None
        settings = await find_installation()
        if security:
            return await hardening.examine(settings)
        return await examine(settings, is_embedded=is_embedded)

    findings = run(work())
    broken = [finding for finding in findings if finding.state == "bad"]
    if json:
        for finding in findings:
            json_line(
                {"what": finding.what, "state": finding.state, "says": finding.says, "fix": finding.fix}
            )
    else:
        table(["", "check", "finding"], [(finding.state, finding.what, finding.says) for finding in findings])
        subjects: dict[str, list[str]] = {}
        for finding in findings:
            if finding.fix:
                subjects.setdefault(finding.fix, []).append(finding.what)
        for fix, names in subjects.items():
            out.print(f"\n[bold]{escape(', '.join(dict.fromkeys(names)))}[/bold]: {escape(fix)}")
    if broken:
        err.print(f"\n[red]{len(broken)} of {len(findings)} are bad.[/red]")
        raise typer.Exit(1)


def add_to(app: typer.Typer) -> None:
    app.command()(doctor)
