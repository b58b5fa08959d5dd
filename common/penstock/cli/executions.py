"""The commands that list executions (executions, history), and the output of `show` for one execution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields as dataclass_fields
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import orjson
import typer
from rich.markup import escape

from penstock.cli import clock, name_completion
from penstock.cli.arguments import parse_id
from penstock.cli.execution_filter import choosing
from penstock.cli.output import (
    Json,
    age,
    err,
    fields,
    json_line,
    listing,
    out,
    table,
    table_with_notes,
)
from penstock.cli.server import read
from penstock.cli.step_tree import print_steps
from penstock.cli.workflow_tree import print_sent_commands, print_tree
from penstock.language.moves import COMPLETED
from penstock.language.terms.local_access import LOCAL_ACCESS
from penstock.operate.saved_views import filter_of
from penstock.run.root_cause import headline, short_cause
from penstock.store.executions.execution_list import ExecutionFilter, ListedExecution
from penstock.store.outbox.queues import WORK

if TYPE_CHECKING:
    from penstock.cli.server import AnyClient
    from penstock.store.access.saved_views import SavedView


@choosing
def executions(
    *,
    chosen: ExecutionFilter,
    view: Annotated[
        str | None,
        typer.Option(
            help="A saved view, by its name or id. Options replace its filters of the same names.",
            autocompletion=name_completion.views,
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="The maximum number to list.")] = 20,
    before: Annotated[
        UUID | None,
        typer.Option(parser=parse_id, help="List only executions that are older than the one with this id."),
    ] = None,
    children: Annotated[bool, typer.Option("--children", help="Include the tasks of workflows.")] = False,
    json: Json = False,
) -> None:
    """List the newest executions."""
    chosen = replace(chosen, children=children)

    async def work(client: AnyClient) -> list[ListedExecution]:
        filters = chosen if view is None else _within(await client.views.get(view, by=LOCAL_ACCESS), chosen)
        return await client.executions(filters, before=before, limit=limit)

    rows = read(work)
    if json:
        for row in rows:
            json_line(row)
        return
    tries = [row.attempt or None for row in rows]
    tried = any(number is not None and number > 1 for number in tries)
    titled = any(row.title for row in rows)
    notes = [_note(row) for row in rows]
    columns = [
        "id",
        "status",
        "age",
        "duration",
        *(["attempts"] if tried else []),
        "action",
        *(["title"] if titled else []),
    ]
    cells = [
        (
            r.id,
            format_status(r.status, r.paused),
            age(r.created_at).removesuffix(" ago"),
            _took(r.created_at, r.finished_at),
            *([number] if tried else []),
            r.action if r.task is None else f"{r.task}: {r.action}",
            *([r.title] if titled else []),
        )
        for r, number in zip(rows, tries, strict=True)
    ]
    if any(notes):
        fails = any(row.failure or row.rerun for row in rows)
        waits = any(row.waits_for for row in rows)
        column = "failure or wait" if fails and waits else "failure" if fails else "wait"
        table_with_notes(column, columns, cells, notes)
    else:
        table(
            columns,
            cells,
            empty="No executions yet. Start one with `penstock run ACTION`."
            if chosen == ExecutionFilter(children=children) and before is None and view is None
            else "There are none."
            if children or view is not None
            else "There are none. Tasks of workflows are left out: --children includes them.",
        )
    if len(rows) == limit:
        err.print(f"[dim]There may be more: penstock executions --before {rows[-1].id}[/dim]")


def _within(view: SavedView, options: ExecutionFilter) -> ExecutionFilter:
    """Return the filter of a view, in which each condition of `options` replaces its own."""
    conditions = {field.name: getattr(options, field.name) for field in dataclass_fields(options)}
    return replace(
        filter_of(view, clock.noted), **{name: value for name, value in conditions.items() if value}
    )


def _note(row: ListedExecution) -> str | None:
    """Return what failed in an execution, or what it waits for; None for neither."""
    if row.rerun is not None:
        return f"{short_cause(row.failure or '')} (rerun as {row.rerun})".strip()
    if row.failure is not None:
        return short_cause(row.failure)
    return None if row.waits_for is None else row.waits_for.text


def format_status(status: str, paused: bool) -> str:
    """Return the status for people, and that the workflow is paused."""
    return f"{status}, paused" if paused else status


def _took(created: datetime, finished: datetime | None) -> timedelta | None:
    return finished - created if finished else None


def format_run_labels(labels: Mapping[str, str] | None) -> str | None:
    """Return labels as one text; None for none."""
    return " ".join(f"{key}={value}" for key, value in labels.items()) if labels else None


def _progress(progress: Mapping[str, Any] | None) -> str | None:
    return None if progress is None else f"{progress['done']:.0%} {progress['text']} ({age(progress['at'])})"


def _pairs(values: Mapping[str, Any] | None) -> str | None:
    """Return an object as `name=value` words, with inner objects as `outer.inner=value`; None for none."""
    if not values:
        return None
    words: list[str] = []
    pending = list(values.items())[::-1]
    while pending:
        name, value = pending.pop()
        if isinstance(value, Mapping) and value:
            pending += [(f"{name}.{inner}", item) for inner, item in list(value.items())[::-1]]
        else:
            words.append(f"{name}={value if isinstance(value, str) else orjson.dumps(value).decode()}")
    return " ".join(words)


def print_execution(execution: dict[str, Any]) -> None:
    """Print one execution for people: what it is and how it went. Values that are the ordinary ones are left out."""
    finished_at = execution["finished_at"]
    wait = execution.get("waits_for")
    is_held = wait is not None and wait.because in ("held", "paused")
    is_queued_work = (execution["queue"] or "").startswith(WORK)
    fields(
        {
            "execution": execution["id"],
            "action": execution["action"],
            "title": execution.get("title"),
            "key": execution.get("key"),
            "labels": format_run_labels(execution.get("labels")),
            "namespace": execution["namespace"],
            "status": format_status(execution["status"], execution.get("paused", False)),
            "wait": None if wait is None else wait.text,
            "reason": None if is_held else execution["reason"],
            "route": None if finished_at or not is_queued_work else execution["queue"].removeprefix(WORK),
            "parent": execution["parent"],
            "task": execution["task"],
            "item": execution["item"] if execution["item"] >= 0 else None,
            "priority": execution["priority"] or None,
            "created": execution["created_at"],
            "not before": None if finished_at else execution["not_before"],
            "finished": finished_at,
            "duration": _took(execution["created_at"], finished_at),
            "rerun as": " ".join(sent["value"]["as"] for sent in execution["told"] if sent["kind"] == "rerun")
            or None,
            "waited": None if execution["waited"] is None else timedelta(seconds=execution["waited"]),
            "ran": None if execution["ran"] is None else timedelta(seconds=execution["ran"]),
            "progress": None if execution["status"] == COMPLETED else _progress(execution["progress"]),
            "attempt": execution["attempt"] or None,
            "lost by workers": execution["recoveries"] or None,
            "origin": _pairs(execution["origin"]),
            "trace": execution["trace"] and (execution["trace"]["url"] or execution["trace"]["id"]),
            "options": _pairs(execution["options"]),
        }
    )
    out.print("[dim]parameters[/dim]")
    out.print_json(orjson.dumps(execution["params"]).decode())
    if execution["status"] == COMPLETED:
        out.print("[dim]result[/dim]")
        out.print_json(orjson.dumps(execution["result"]).decode())
    if failure := execution["failure"]:
        out.print(f"[red]{execution['status']}[/red]: {escape(failure)}")
    if error := execution["error"]:
        if (message := f"{error.get('type')}: {error.get('message')}") != failure:
            out.print(message, style="dim", markup=False, highlight=False)
        if error.get("traceback"):
            out.print(error["traceback"].rstrip(), style="dim", markup=False, highlight=False)
        if (answer := error.get("answer")) and answer["body"]:
            out.print(f"[dim]body of the answer {answer['status']}[/dim]")
            out.print(answer["body"].rstrip(), style="dim", markup=False, highlight=False)
    if execution["tasks"]:
        out.print()
        print_tree(execution["tasks"], execution["created_at"])
    if execution.get("steps"):
        out.print()
        print_steps(execution["steps"], execution["state"])
    if execution["told"]:
        out.print()
        print_sent_commands(execution["told"])
    if execution["budgets"]:
        out.print()
        table(
            ["budget", "amount", "used", "reserved", "left", "most by"],
            [
                (
                    budget["unit"],
                    *(f"{budget[name]:,.10g}" for name in ("amount", "used", "reserved", "remaining")),
                    budget["shares"][0]["action"] if budget["shares"] else None,
                )
                for budget in execution["budgets"]
            ],
            empty="",
        )
    if effects := execution.get("effects"):
        out.print()
        table(
            ["published or started", "name", "status", "at"],
            [(f"{e['kind']} {e['id']}", e["name"], e["status"], e["created_at"]) for e in effects],
        )
    if execution["attempts"]:
        out.print()
        table(
            ["attempt", "outcome", "worker", "started", "duration", "error"],
            [
                (
                    a["attempt"],
                    a["outcome"],
                    a["worker"],
                    a["started_at"],
                    a["duration"],
                    None if a["error"] is None else headline(a["error"]),
                )
                for a in execution["attempts"]
            ],
        )


def history(
    id: Annotated[
        UUID, typer.Argument(parser=parse_id, help="An execution.", autocompletion=name_completion.executions)
    ],
    json: Json = False,
) -> None:
    """Show every status of an execution, with its instant and the actor that changed it."""
    rows = read(lambda client: client.history(id))
    listing(
        ["at", "status", "attempt", "by", "reason"],
        rows,
        lambda r: (r.at, r.new, r.attempt, r.actor, r.reason),
        json=json,
    )


def add_to(app: typer.Typer) -> None:
    for command in (executions, history):
        app.command()(command)
