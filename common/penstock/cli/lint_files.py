"""The command `penstock lint`, which reports all faults of definitions at once, for people and for CI, and `schema`,
for editors."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict
from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from penstock.cli.output import Json, json_line, out
from penstock.engine.durable.lint import lost_calls, nondeterminism, unknown_methods
from penstock.engine.durable.literal_durations import wrong_durations
from penstock.language.loading import Definitions
from penstock.language.loading import lint as loading
from penstock.language.loading.likely_typos import likely_typos
from penstock.language.loading.lint import Fault
from penstock.language.packs.shipped_schemas import shipped
from penstock.language.terms.sources import shown
from penstock.service.environment import load

UNKNOWN = re.compile(r"unknown (action|trigger|workflow)|there is no (action|trigger|workflow) ")
"""The faults of references to definitions that other files may have."""


class Kind(StrEnum):
    pack = "pack"
    workflow = "workflow"


def lint(
    source: Annotated[
        list[str], typer.Argument(help="Python files or modules, YAML workflows, folders of packs.")
    ],
    alone: Annotated[
        bool,
        typer.Option(
            "--alone", help="Accept references to actions and triggers that these files do not define."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Report all faults of definitions, without a database. Exit code 1 if there are any. Python files are run, as
    `apply` runs them."""
    looked = [loading.lint(name) for name in source]
    whole, faults = loading.joined([definitions for definitions, _ in looked])
    noted = [fault for _, reported in looked for fault in reported]
    faults = [fault for fault in noted if not fault.is_warning] + faults
    warnings = [fault for fault in noted if fault.is_warning] + list(likely_typos(whole))
    # After faults, a missing definition may be one that could not be read.
    faults += loading.check(whole, None if faults or alone else load().executors)
    faults += _lost_calls(whole) + _wrong_durations(whole) + _faults_of_durable_functions(whole)
    reported = sorted([*faults, *warnings], key=lambda fault: (fault.file or "", fault.line or 0))
    if json:
        for fault in reported:
            json_line(asdict(fault))
    else:
        print_faults(reported, out)
        if any(UNKNOWN.search(fault.message) for fault in faults):
            out.print(
                "[dim]If other files define the unknown names, lint these files together, or use --alone.[/dim]"
            )
        summary = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        out.print(
            f"[red]{summary}[/red]" if faults else f"[green]no fault[/green] in {len(whole)} definitions"
        )
    if faults:
        raise typer.Exit(1)


def print_faults(faults: Iterable[Fault], to: Console) -> None:
    for fault in faults:
        kind = "[yellow]warning:[/yellow] " if fault.is_warning else ""
        to.print(kind + escape(str(fault)), highlight=False)
        if fault.hint:
            to.print(f"    [dim]{escape(fault.hint)}[/dim]", highlight=False)


def _lost_calls(definitions: Definitions) -> list[Fault]:
    """Return a fault for each call in an async action that lacks its `await`."""
    return [
        Fault(
            f"`{item.call}(...)` does nothing without `await`",
            shown(item.file),
            item.line,
            f"Write `await {item.call}(...)`.",
        )
        for action in definitions.actions.values()
        if action.function is not None
        for item in lost_calls(action.function, durable=action.durable)
    ]


def _wrong_durations(definitions: Definitions) -> list[Fault]:
    """Return a fault for each literal in the code of actions that its call will refuse as a duration."""
    functions = [item.function for item in definitions.actions.values() if item.function is not None]
    return [
        Fault(item.message, shown(item.file), item.line, item.hint) for item in wrong_durations(functions)
    ]


def _faults_of_durable_functions(definitions: Definitions) -> list[Fault]:
    """Return the faults of durable functions: unknown methods of the context, and clocks or other outside state that they
    read outside of their steps."""
    functions = [
        item.function for item in definitions.actions.values() if item.durable and item.function is not None
    ]
    unknown = [
        Fault(f"the context has no `{item.name}`", shown(item.file), item.line, item.hint or None)
        for function in functions
        for item in unknown_methods(function)
    ]
    return unknown + [
        Fault(
            f"{item.call} may return another value when the run continues",
            shown(item.file),
            item.line,
            f"Use {item.instead}.",
        )
        for function in functions
        for item in nondeterminism(function)
    ]


def schema(
    kind: Annotated[Kind, typer.Argument(help="A pack (pack.yaml), or a file with a workflow.")],
) -> None:
    """Print the JSON Schema of the YAML of packs or workflows, for your editor. Save it, and name the file in the
    first line of the YAML as `# yaml-language-server: $schema=pack.schema.json`."""
    out.print_json(shipped(kind.value))


def add_to(app: typer.Typer) -> None:
    app.command()(lint)
    app.command()(schema)
