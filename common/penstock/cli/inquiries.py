"""The commands about inquiries: inquiries, answer."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import orjson
import typer

from penstock.cli import name_completion
from penstock.cli.arguments import parse_id
from penstock.cli.command_runner import ME
from penstock.cli.executions import format_run_labels
from penstock.cli.output import Json, err, json_line, listing, out
from penstock.cli.server import by_either, read
from penstock.cli.text_values import send_one_as_typed
from penstock.errors import PenstockError
from penstock.operate.why.workflow import ANSWER_WHILE_PAUSED

if TYPE_CHECKING:
    from penstock.cli.server import AnyClient
    from penstock.store.executions.inquiries import Inquiry

MOST = 1000
"""The maximum number of inquiries that the command lists."""


def inquiries(
    every: Annotated[bool, typer.Option("--all", help="Include answered inquiries.")] = False,
    assignee: Annotated[str | None, typer.Option(help="Only inquiries for this assignee.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=MOST, help="The maximum number to list.")] = 100,
    json: Json = False,
) -> None:
    """List the inquiries that executions wait for, newest first."""
    rows = read(lambda client: client.inquiries(answered=every, assignee=assignee, limit=limit))
    listing(
        [
            *("execution", "status", "run", "labels", "assignee", "question", "due", "default"),
            *(("answer", "answered by") if every else ()),
        ],
        rows,
        lambda r: (
            r.execution_id,
            ("open, paused" if _is_paused(r) else "open") if r.status == "created" else r.status,
            None if r.run is None else r.run.title or r.run.action,
            None if r.run is None else format_run_labels(r.run.labels),
            r.assignee,
            r.prompt,
            r.due_at,
            r.default,
            *((r.response, r.responder) if every else ()),
        ),
        json=json,
        empty="No question is open.",
    )
    if not json and any(r.status == "created" and _is_paused(r) for r in rows):
        err.print(f"[dim]If the workflow is paused: {ANSWER_WHILE_PAUSED}[/dim]")
    if len(rows) == limit < MOST:
        err.print(f"[dim]There may be more: penstock inquiries --limit {min(MOST, 10 * limit)}[/dim]")


def _is_paused(inquiry: Inquiry) -> bool:
    """Return True if the workflow of a question is paused."""
    return inquiry.run is not None and inquiry.run.paused


def answer(
    id: Annotated[
        UUID,
        typer.Argument(
            parser=parse_id,
            help="The execution that asks.",
            autocompletion=name_completion.waiting_executions,
        ),
    ],
    response: Annotated[
        str,
        typer.Argument(
            help="The answer. It is read as JSON if it is JSON and the question does not require text."
        ),
    ],
    by: Annotated[str, typer.Option(help="The author of the answer.")] = ME,
    json: Json = False,
) -> None:
    """Answer an inquiry. The answer becomes the execution's result."""

    async def work(client: AnyClient) -> tuple[Any, bool]:
        async def read_schema() -> Any:
            schemas = [row.schema for row in await client.inquiries(execution=id)]
            return orjson.loads(schemas[0]) if schemas and schemas[0] else None

        _, value = await send_one_as_typed(
            lambda value: client.answer(id, value, by=by), response, read_schema
        )
        rows = []
        # The answer is stored. A caller that may not read hears nothing about the pause.
        with contextlib.suppress(PenstockError):
            rows = [] if json else await client.inquiries(answered=True, execution=id)
        return value, any(_is_paused(row) for row in rows)

    value, paused = by_either(work)
    if json:
        json_line({"id": id, "answered": value, "by": by})
        return
    if paused:
        out.print("Answered. The workflow is paused. The tasks after the question start when it is resumed.")
        out.print(f"See the execution with: penstock show {id}")
        return
    out.print(f"Answered. See the execution with: penstock show {id}")


def add_to(app: typer.Typer) -> None:
    app.command()(inquiries)
    app.command()(answer)
