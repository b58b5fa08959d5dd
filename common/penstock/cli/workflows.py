"""Commands about workflows as they are defined: show, versions and diff."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import orjson
import typer

from penstock.cli.command_runner import with_session
from penstock.cli.output import Json, json_line, out, table
from penstock.errors import InvalidInput, NotFound
from penstock.language.workflows import Workflow, from_body, from_yaml, to_yaml
from penstock.language.workflows.diagram import to_dot, to_mermaid
from penstock.language.workflows.diff import Difference, diff
from penstock.language.workflows.graph import Graph
from penstock.operate.masking import Masking
from penstock.store import catalog
from penstock.store.database import Session

DIGEST = re.compile(r"[0-9a-fA-F]{4,64}")
SHORT = 12
"""Characters of a digest that name a version to people."""

workflows = typer.Typer(help="Show and compare workflows.", no_args_is_help=True)

Ref = Annotated[str, typer.Argument(help="The workflow's ref, such as shop.fulfil.")]


async def current(session: Session, ref: str, masking: Masking | None = None) -> Workflow:
    """The current version of a workflow, to be shown where it is masked. Raises NotFound."""
    rows = await catalog.current(session, ["workflow"], [ref])
    if not rows:
        raise _missing(ref)
    body = orjson.loads(rows[0].body)
    return from_body(body if masking is None else masking.definition("workflow", body))


@workflows.command()
def show(
    ref: Ref,
    dot: Annotated[bool, typer.Option("--dot", help="As a Graphviz drawing.")] = False,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="As a Mermaid drawing.")] = False,
    yaml: Annotated[bool, typer.Option("--yaml", help="As YAML, which is the default.")] = False,
    json: Json = False,
) -> None:
    """Show the current version of a workflow."""
    if dot + mermaid + yaml + json > 1:
        raise InvalidInput(
            "it is shown in one way at a time", hint="Choose one of --yaml, --json, --dot, --mermaid."
        )

    async def work(session: Session) -> Workflow:
        return await current(session, ref, await Masking.load(session))

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
    """List the versions of a workflow, the newest first. A run keeps the one that it began with."""
    rows = with_session(lambda session: catalog.history(session, "workflow", ref))
    if not rows:
        raise _missing(ref)
    if json:
        for row in rows:
            json_line({name: value for name, value in asdict(row).items() if name != "body"})
        return
    table(
        ["version", "", "since", "open runs"],
        [
            (row.digest[:SHORT], "current" if row.current else "", row.created_at, row.open_runs)
            for row in rows
        ],
    )


@workflows.command("diff")
def compare(
    ref: Ref,
    old: Annotated[str, typer.Argument(metavar="A", help="A version (see `versions`), or a YAML workflow.")],
    new: Annotated[str | None, typer.Argument(metavar="[B]", help="The same.")] = None,
    json: Json = False,
) -> None:
    """Say what changed from A to B. A alone: what it would change in the current version."""

    async def work(session: Session) -> list[Difference]:
        if new is None:
            before, after = await current(session, ref), await _version(session, ref, old)
        else:
            before, after = await _version(session, ref, old), await _version(session, ref, new)
        masking = await Masking.load(session)
        return masking.differences(diff(before, after), before.body(), after.body())

    found = with_session(work)
    if json:
        for one in found:
            json_line(asdict(one))
        return
    out.print("\n".join(map(str, found)) if found else "No difference.", markup=False)


async def _version(session: Session, ref: str, word: str) -> Workflow:
    """The version of this digest, which may be shortened, or what is in the file of this name. Raises NotFound."""
    if DIGEST.fullmatch(word) and not Path(word).exists():
        found = await catalog.history(session, "workflow", ref, word.lower())
        if len(found) == 1:
            return from_body(orjson.loads(found[0].body))
        raise NotFound(
            f"{'several versions' if found else 'no version'} of {ref} begin with {word}",
            hint=f"`penstock workflow versions {ref}` lists them.",
        )
    return from_yaml(_text(Path(word)), word)


def _missing(ref: str) -> NotFound:
    return NotFound(f"no workflow {ref!r}", hint="`penstock actions` lists actions and workflows.")


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file}: {error}", hint="Name a YAML file with a workflow.") from None


def add_to(app: typer.Typer) -> None:
    app.add_typer(workflows, name="workflow")
