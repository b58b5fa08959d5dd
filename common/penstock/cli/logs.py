"""The command `penstock logs`, which prints the output of an execution, or of all tasks of a workflow."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from penstock.cli import name_completion
from penstock.cli.arguments import parse_id
from penstock.cli.command_runner import with_session
from penstock.cli.output import Json, err, json_line, out
from penstock.cli.server import chosen_server, over_http
from penstock.errors import NotFound
from penstock.operate.workflow_tree import names_inside
from penstock.store.executions import executions as store
from penstock.store.executions import log_lines
from penstock.store.session.database import Session

if TYPE_CHECKING:
    from penstock.client.http_client import HttpClient


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
        over_http(lambda client: _print_over_http(client, id, follow, json))
        if chosen_server() is not None
        else with_session(lambda session: _print_lines(session, id, follow, json), either=True)
    )
    if not printed and not json:
        err.print("[dim]It has printed nothing.[/dim]")


async def _print_lines(session: Session, id: UUID, follow: bool, json: bool) -> int:
    """Print the stored lines, and with `follow` the later ones. Return the number of lines."""
    count = 0
    last: dict[UUID, tuple[int, int]] = {}
    names: dict[UUID, str] = {}
    while True:
        rows = await store.find(session, [id])
        if not rows:
            raise NotFound(f"no execution {id}", hint="`penstock executions` lists the newest.")
        last_look = not follow or await log_lines.are_all_there(session, rows[0].finished_at)
        names = await names_inside(session, id)
        for execution in names:
            last.setdefault(execution, (0, -1))
        lines = await log_lines.after_each(session, last)
        for execution, line in lines:
            _print(names[execution], execution, line, json)
            last[execution] = (line.attempt, line.seq)
        count += len(lines)
        if len(lines) < log_lines.PAGE:
            if last_look:
                return count
            await asyncio.sleep(0.3)


async def _print_over_http(client: HttpClient, id: UUID, follow: bool, json: bool) -> int:
    """Print the lines of an execution over HTTP, and return their number. The lines of tasks have to be read by the
    tasks' own ids."""
    count, cursor = 0, None
    while True:
        lines, cursor, finished = await client.log_lines(id, cursor)
        for line in lines:
            _print("", id, line, json)
        count += len(lines)
        if finished or (not lines and not follow):
            return count
        if not lines:
            await asyncio.sleep(0.5)


def _print(task: str, execution: UUID, line: log_lines.LogLine, json: bool) -> None:
    if json:
        json_line({**({"execution": execution, "task": task} if task else {}), **asdict(line)})
        return
    style = "red" if line.stream == "stderr" else None
    out.print(f"{task} | {line.line}" if task else line.line, markup=False, highlight=False, style=style)


def add_to(app: typer.Typer) -> None:
    app.command()(logs)
