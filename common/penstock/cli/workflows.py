"""Commands about workflows: show, diff, and what people tell a run."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import orjson
import typer

from penstock.cli.output import out
from penstock.cli.running import with_client, with_session
from penstock.client import Client
from penstock.database import Session
from penstock.errors import NotFound
from penstock.store import catalog
from penstock.workflows import Workflow, from_body, from_yaml, to_yaml
from penstock.workflows.diff import diff
from penstock.workflows.draw import to_dot, to_mermaid
from penstock.workflows.graph import Graph

workflows = typer.Typer(
    help="Show and compare workflows; pause, resume and correct their runs.", no_args_is_help=True
)

By = Annotated[str, typer.Option(help="Who says so; kept with the run.")]
Why = Annotated[str | None, typer.Option("--reason", help="Kept with the run.")]


async def current(session: Session, ref: str) -> Workflow:
    """The current version of a workflow. Raises NotFound."""
    rows = await catalog.current(session, ["workflow"], [ref])
    if not rows:
        raise NotFound(f"no workflow {ref!r}", hint="`penstock actions` lists actions and workflows.")
    return from_body(orjson.loads(rows[0]["body"]))


@workflows.command()
def show(
    ref: str,
    dot: Annotated[bool, typer.Option("--dot", help="As a Graphviz drawing.")] = False,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="As a Mermaid drawing.")] = False,
) -> None:
    """Show the current version of a workflow, as YAML unless asked otherwise."""
    workflow = with_session(lambda session: current(session, ref))
    if dot or mermaid:
        graph = Graph(workflow)
        out.print(to_dot(graph, {}) if dot else to_mermaid(graph, {}), markup=False)
    else:
        out.print(to_yaml(workflow), markup=False)


@workflows.command("diff")
def compare(
    ref: str, file: Annotated[Path, typer.Argument(help="A YAML workflow to compare it with.")]
) -> None:
    """Say what a file would change in the current version."""
    old = with_session(lambda session: current(session, ref))
    found = diff(old, from_yaml(file.read_text(), str(file)))
    out.print("\n".join(map(str, found)) if found else "No difference.", markup=False)


def _tell(
    id: UUID, kind: str, by: str, reason: str | None, task: str | None = None, value: Any = None
) -> None:
    async def work(client: Client) -> None:
        await client.command(id, kind, task=task, value=value, by=by, reason=reason)

    with_client(work)
    out.print(f"Told. See what came of it with: penstock show {id}")


@workflows.command()
def pause(id: UUID, by: By = getpass.getuser(), reason: Why = None) -> None:
    """Start nothing more in a run; what runs goes on."""
    _tell(id, "pause", by, reason)


@workflows.command()
def resume(id: UUID, by: By = getpass.getuser(), reason: Why = None) -> None:
    """Start what became due while a run was paused."""
    _tell(id, "resume", by, reason)


@workflows.command()
def skip(id: UUID, task: str, by: By = getpass.getuser(), reason: Why = None) -> None:
    """Do without a task that has not ended."""
    _tell(id, "skip", by, reason, task)


@workflows.command("set-result")
def set_result(id: UUID, task: str, result: str, by: By = getpass.getuser(), reason: Why = None) -> None:
    """Complete a task that has not ended, with this result (JSON, or plain text)."""
    try:
        value = orjson.loads(result)
    except orjson.JSONDecodeError:
        value = result
    _tell(id, "set_result", by, reason, task, value)


def add_to(app: typer.Typer) -> None:
    app.add_typer(workflows, name="workflow")
