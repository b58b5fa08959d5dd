"""Commands about workflows as they are defined: show and diff."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import orjson
import typer

from penstock.cli.command_runner import with_session
from penstock.cli.output import Json, json_line, out
from penstock.errors import InvalidInput, NotFound
from penstock.language.workflows import Workflow, from_body, from_yaml, to_yaml
from penstock.language.workflows.diagram import to_dot, to_mermaid
from penstock.language.workflows.diff import Difference, diff
from penstock.language.workflows.graph import Graph
from penstock.operate.masking import Masking
from penstock.store import catalog
from penstock.store.database import Session

workflows = typer.Typer(help="Show and compare workflows.", no_args_is_help=True)

Ref = Annotated[str, typer.Argument(help="The workflow's ref, such as shop.fulfil.")]


async def current(session: Session, ref: str, masking: Masking | None = None) -> Workflow:
    """The current version of a workflow, to be shown where it is masked. Raises NotFound."""
    rows = await catalog.current(session, ["workflow"], [ref])
    if not rows:
        raise NotFound(f"no workflow {ref!r}", hint="`penstock actions` lists actions and workflows.")
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


@workflows.command("diff")
def compare(
    ref: Ref,
    file: Annotated[Path, typer.Argument(help="A YAML workflow to compare it with.")],
    json: Json = False,
) -> None:
    """Say what a file would change in the current version."""
    new = from_yaml(_text(file), str(file))

    async def work(session: Session) -> list[Difference]:
        old = await current(session, ref)
        return (await Masking.load(session)).differences(diff(old, new), old.body(), new.body())

    found = with_session(work)
    if json:
        for one in found:
            json_line(asdict(one))
        return
    out.print("\n".join(map(str, found)) if found else "No difference.", markup=False)


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file}: {error}", hint="Name a YAML file with a workflow.") from None


def add_to(app: typer.Typer) -> None:
    app.add_typer(workflows, name="workflow")
