"""The commands about workflow definitions: show, versions and diff."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli import name_completion
from penstock.cli.command_runner import with_session
from penstock.cli.output import Json, json_line, listing, out
from penstock.errors import InvalidInput
from penstock.language.workflows import Workflow, from_yaml, to_yaml
from penstock.language.workflows.diagram import to_dot, to_mermaid
from penstock.language.workflows.diff import Difference
from penstock.language.workflows.graph import Graph
from penstock.operate import workflow_versions as operate
from penstock.operate.masking import Masking
from penstock.store.session.database import Session

DIGEST = re.compile(r"[0-9a-fA-F]{4,64}")
SHORT = 12
"""The number of digits of a digest that identify a version to people."""

workflows = typer.Typer(help="Show and compare workflows.", no_args_is_help=True)

Ref = Annotated[
    str,
    typer.Argument(help="The workflow's ref, such as shop.fulfil.", autocompletion=name_completion.workflows),
]


@workflows.command()
def show(
    ref: Ref,
    dot: Annotated[bool, typer.Option("--dot", help="Print a Graphviz drawing.")] = False,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Print a Mermaid drawing.")] = False,
    yaml: Annotated[bool, typer.Option("--yaml", help="Print YAML, which is the default.")] = False,
    json: Json = False,
) -> None:
    """Show the current version of a workflow."""
    if dot + mermaid + yaml + json > 1:
        raise InvalidInput(
            "only one output format can be chosen", hint="Choose one of --yaml, --json, --dot, --mermaid."
        )

    async def work(session: Session) -> Workflow:
        return await operate.current(session, ref, await Masking.load(session))

    workflow = with_session(work)
    if json:
        json_line(workflow.body())
    elif dot or mermaid:
        graph = Graph(workflow)
        out.print(to_dot(graph, {}) if dot else to_mermaid(graph, {}), markup=False)
    else:
        out.print(to_yaml(workflow), markup=False)


@workflows.command()
def versions(ref: Ref, json: Json = False) -> None:
    """List the versions of a workflow, newest first. A run keeps the version with which it began."""
    rows = with_session(lambda session: operate.versions(session, ref))
    listing(
        ["version", "", "since", "open executions"],
        rows,
        lambda row: (row.digest[:SHORT], "current" if row.current else "", row.created_at, row.open_runs),
        json=json,
        document=lambda row: {name: value for name, value in asdict(row).items() if name != "body"},
    )


@workflows.command("diff")
def compare(
    ref: Ref,
    old: Annotated[
        str, typer.Argument(metavar="A", help="A version (see `versions`), or the path of a YAML workflow.")
    ],
    new: Annotated[
        str | None,
        typer.Argument(metavar="[B]", help="The version to compare with, or the path of a YAML workflow."),
    ] = None,
    json: Json = False,
) -> None:
    """Show the changes from A to B. Without B, show what A would change in the current version."""

    async def work(session: Session) -> list[Difference]:
        if new is None:
            old_version, new_version = await operate.current(session, ref), await _version(session, ref, old)
        else:
            old_version, new_version = await _version(session, ref, old), await _version(session, ref, new)
        return await operate.differences(session, old_version, new_version)

    differences = with_session(work)
    if json:
        for difference in differences:
            json_line(asdict(difference))
        return
    out.print("\n".join(map(str, differences)) if differences else "No difference.", markup=False)


async def _version(session: Session, ref: str, word: str) -> Workflow:
    """Return the version with this digest, which may be shortened, or the workflow in the file of this name. Raises
    NotFound if there is no such version or file."""
    if DIGEST.fullmatch(word) and not Path(word).exists():
        return await operate.version(session, ref, word.lower())
    return from_yaml(_text(Path(word)), word)


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file}: {error}", hint="Name a YAML file with a workflow.") from None


def add_to(app: typer.Typer) -> None:
    app.add_typer(workflows, name="workflow")
