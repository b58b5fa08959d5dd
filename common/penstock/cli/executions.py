"""Commands that show executions: executions, history; and what `show` shows of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Annotated, Any
from uuid import UUID

import orjson
import typer
from rich.markup import escape

from penstock.cli import name_completion
from penstock.cli.execution_filter import choosing
from penstock.cli.output import Json, age, err, fields, json_line, out, table
from penstock.cli.server import done, read
from penstock.cli.step_tree import print_steps
from penstock.cli.workflow_tree import print_sent_commands, print_tree
from penstock.language.moves import COMPLETED
from penstock.store import execution_list
from penstock.store.execution_list import ExecutionFilter


@choosing
def executions(
    *,
    chosen: ExecutionFilter,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many.")] = 20,
    before: Annotated[UUID | None, typer.Option(help="Go on after this id.")] = None,
    children: Annotated[bool, typer.Option("--children", help="With the tasks of workflows.")] = False,
    json: Json = False,
) -> None:
    """List the newest executions."""
    chosen = replace(chosen, children=children)
    rows = read(
        lambda session: execution_list.page(session, chosen, before=before, limit=limit),
        lambda client: client.executions(chosen, before=before, limit=limit),
    )
    if json:
        for row in rows:
            json_line(row)
        return
    tried = any(row.attempt > 1 for row in rows)
    table(
        ["id", "status", "age", "took", *(["tries"] if tried else []), "action"],
        [
            (
                r.id,
                r.status,
                age(r.created_at).removesuffix(" ago"),
                _took(r.created_at, r.finished_at),
                *([r.attempt] if tried else []),
                r.action if r.task is None else f"{r.task}: {r.action}",
            )
            for r in rows
        ],
        empty="No executions yet. Start one with `penstock run ACTION`."
        if chosen == ExecutionFilter(children=children) and before is None
        else "There are none.",
    )
    if len(rows) == limit:
        err.print(f"[dim]There may be more: penstock executions --before {rows[-1].id}[/dim]")


def _took(created: datetime, finished: datetime | None) -> timedelta | None:
    return finished - created if finished else None


def _progress(said: Mapping[str, Any] | None) -> str | None:
    return None if said is None else f"{said['done']:.0%} {said['text']} ({age(said['at'])})"


def print_execution(found: dict[str, Any]) -> None:
    """One execution, for people: what it is and how it went; what has its ordinary value is left out."""
    ended = found["finished_at"]
    fields(
        {
            "execution": found["id"],
            "action": found["action"],
            "namespace": found["namespace"],
            "status": found["status"],
            "reason": found["reason"],
            "queue": None if ended else found["queue"],
            "parent": found["parent"],
            "task": found["task"],
            "item": found["item"] if found["item"] >= 0 else None,
            "priority": found["priority"] or None,
            "created": found["created_at"],
            "not before": None if ended else found["not_before"],
            "finished": ended,
            "took": _took(found["created_at"], ended),
            "waited": None if found["waited"] is None else timedelta(seconds=found["waited"]),
            "ran": None if found["ran"] is None else timedelta(seconds=found["ran"]),
            "progress": _progress(found["progress"]),
            "attempt": found["attempt"] or None,
            "lost by workers": found["recoveries"] or None,
            "origin": found["origin"],
            "trace": found["trace"] and (found["trace"]["url"] or found["trace"]["id"]),
            "options": found["options"],
        }
    )
    out.print("[dim]parameters[/dim]")
    out.print_json(orjson.dumps(found["params"]).decode())
    if found["status"] == COMPLETED:
        out.print("[dim]result[/dim]")
        out.print_json(orjson.dumps(found["result"]).decode())
    if error := found["error"]:
        out.print(f"[red]{escape(str(error.get('type')))}[/red]: {escape(str(error.get('message')))}")
        if error.get("traceback"):
            out.print(error["traceback"].rstrip(), style="dim", markup=False, highlight=False)
    if found["tasks"]:
        out.print()
        print_tree(found["tasks"], found["created_at"])
    if found.get("steps"):
        out.print()
        print_steps(found["steps"], found["state"])
    if found["told"]:
        out.print()
        print_sent_commands(found["told"])
    if found["attempts"]:
        out.print()
        table(
            ["try", "outcome", "worker", "started", "took", "error"],
            [
                (
                    a["attempt"],
                    a["outcome"],
                    a["worker"],
                    a["started_at"],
                    a["duration"],
                    (a["error"] or {}).get("message"),
                )
                for a in found["attempts"]
            ],
        )


def history(
    id: Annotated[UUID, typer.Argument(help="An execution.", autocompletion=name_completion.executions)],
    json: Json = False,
) -> None:
    """Show every status of an execution, with its instant and the actor that moved it."""

    rows = done(lambda client: client.history(id), lambda client: client.history(id))
    if json:
        for row in rows:
            json_line(row)
        return
    table(
        ["at", "status", "try", "by", "reason"],
        [(r.at, r.new, r.attempt, r.actor, r.reason) for r in rows],
    )


def add_to(app: typer.Typer) -> None:
    for command in (executions, history):
        app.command()(command)
