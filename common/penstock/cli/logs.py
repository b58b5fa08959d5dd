"""The command `penstock logs`, which prints the output of an execution, or of all tasks of a workflow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from penstock.cli import name_completion
from penstock.cli.arguments import parse_id
from penstock.cli.command_runner import with_session
from penstock.cli.output import Json, err, json_line, out
from penstock.cli.server import chosen_server, over_http
from penstock.operate.workflow_tree import names_inside
from penstock.store.executions import executions, log_lines
from penstock.store.session.database import Session

if TYPE_CHECKING:
    from penstock.client.http_client import HttpClient

Page = tuple[list[tuple[str, UUID, log_lines.LogLine]], bool]
"""Lines, each with the name of its task (empty for the execution itself) and its execution, and True if no lines follow."""


def logs(
    id: Annotated[
        UUID, typer.Argument(parser=parse_id, help="An execution.", autocompletion=name_completion.executions)
    ],
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Print new lines until the execution has ended.")
    ] = False,
    json: Json = False,
) -> None:
    """Print the output and the log of an execution. For a workflow, print the lines of all its tasks, each with the
    task's name."""
    printed = (
        over_http(lambda client: _print_pages(_over_http(client, id), follow, json))
        if chosen_server() is not None
        else with_session(lambda session: _print_pages(_in_database(session, id), follow, json), either=True)
    )
    if not printed and not json:
        err.print("[dim]The execution has printed nothing.[/dim]")


async def _print_pages(pages: AsyncIterator[Page], follow: bool, json: bool) -> int:
    """Print the stored lines, and with `follow` the later ones. Return the number of lines."""
    count = 0
    async for lines, is_last in pages:
        for task, execution, line in lines:
            _print(task, execution, line, json)
        count += len(lines)
        is_full = len(lines) >= log_lines.PAGE
        if is_last or not (follow or is_full):
            break
        if not is_full:
            await asyncio.sleep(0.3)
    return count


async def _in_database(session: Session, id: UUID) -> AsyncIterator[Page]:
    """Yield the lines of an execution and of all executions inside it, each page after the one before."""
    last: dict[UUID, tuple[int, int]] = {}
    while True:
        row = await executions.get(session, id)
        complete = await log_lines.are_all_there(session, row.finished_at)
        names = await names_inside(session, id)
        for execution in names:
            last.setdefault(execution, (0, -1))
        lines = await log_lines.after_each(session, last)
        last |= {execution: (line.attempt, line.seq) for execution, line in lines}
        yield (
            [(names[execution], execution, line) for execution, line in lines],
            complete and len(lines) < log_lines.PAGE,
        )


async def _over_http(client: HttpClient, id: UUID) -> AsyncIterator[Page]:
    """Yield the lines of an execution. Those of its tasks have to be read by the tasks' own ids."""
    cursor: str | None = None
    while True:
        lines, cursor, is_last = await client.log_lines(id, cursor)
        yield [("", id, line) for line in lines], is_last


def _print(task: str, execution: UUID, line: log_lines.LogLine, json: bool) -> None:
    if json:
        json_line({**({"execution": execution, "task": task} if task else {}), **asdict(line)})
        return
    style = "red" if line.stream == "stderr" else None
    out.print(f"{task} | {line.line}" if task else line.line, markup=False, highlight=False, style=style)


def add_to(app: typer.Typer) -> None:
    app.command()(logs)
