"""The commands about waiting work: the reason for one execution, and the numbers by place."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from penstock.cli import name_completion
from penstock.cli.arguments import parse_id
from penstock.cli.command_runner import with_session
from penstock.cli.output import Json, json_line, out, table
from penstock.cli.server import read
from penstock.client.installation import find_installation
from penstock.errors import NotFound
from penstock.operate.why import Why
from penstock.operate.why.answer import span
from penstock.operate.why.queued import group_text
from penstock.store.admission import waiting_work as store
from penstock.store.admission.waiting_work import RouteWork, WaitingLine
from penstock.store.session.database import Session

if TYPE_CHECKING:
    from penstock.cli.server import AnyClient


def why(
    id: Annotated[
        UUID,
        typer.Argument(
            parser=parse_id, help="An execution or an event.", autocompletion=name_completion.executions
        ),
    ],
    task: Annotated[str | None, typer.Argument(help="One of its tasks, if it is a workflow.")] = None,
    json: Json = False,
) -> None:
    """Say in one sentence what an execution waits for, or how it ended. For an event, print one sentence for each rule: the
    execution that the rule started, what the rule still waits for, or why the rule started nothing."""

    async def work(client: AnyClient) -> Why | dict[str, Any]:
        try:
            return await client.why(id, task)
        except NotFound:
            if task is None:
                with contextlib.suppress(NotFound):
                    return await client.event(id)
            raise

    answer = read(work)
    if isinstance(answer, dict):
        _print_verdicts(id, answer["rules"], answer["continued"], json)
        return
    if json:
        json_line(answer.document())
        return
    out.print(f"{answer.status}: {answer.sentence}", markup=False, highlight=False)
    for detail in answer.all_details:
        out.print(f"  {detail}", markup=False, highlight=False)
    facts = answer.document()["facts"]
    facts = facts.get("cause", {}).get("facts", facts)
    holders = facts.get("holders") or []
    if len(holders) > 1:
        out.print()
        table(
            ["has a slot", "action", "status", "for", "worker"],
            [(h["id"], h["action"], h["status"], span(h["seconds"]), h["worker"]) for h in holders],
        )
        if len(holders) < facts["held"]:
            out.print(f"[dim]and {facts['held'] - len(holders)} more[/dim]")


def _print_verdicts(
    id: UUID, verdicts: Sequence[Mapping[str, Any]], continued: Sequence[Mapping[str, Any]], json: bool
) -> None:
    if json:
        json_line({"event": id, "rules": verdicts, "continued": continued})
        return
    for run in continued:
        step = f" in {run['task']}" if run["task"] else ""
        line = f"It ended the wait of {run['action'] or 'an execution'}{step}: execution {run['run'] or run['id']}"
        out.print(line, markup=False, highlight=False)
    for verdict in verdicts:
        line = f"{verdict['rule']}: {verdict['error'] or verdict['why']}"
        out.print(line, markup=False, highlight=False)
        if verdict["execution"] is not None:
            out.print(f"  execution {verdict['execution']}", markup=False, highlight=False)
    if not verdicts and not continued:
        out.print("No rule has this trigger.")


def queues(
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="The maximum number of lanes to list.")] = 20,
    json: Json = False,
) -> None:
    """Print the waiting work: by route for workers, and by key for limits."""

    async def work(session: Session) -> tuple[list[RouteWork], list[WaitingLine]]:
        settings = await find_installation()
        return await store.routes(session, settings.stale_threshold), await store.lines(session, limit)

    routes, lines = with_session(work)
    if json:
        for route in routes:
            json_line({"kind": "route", **asdict(route)})
        for line in lines:
            json_line({"kind": "line", **asdict(line)})
        return
    table(
        ["queue", "requested", "scheduled", "oldest", "running", "workers", "slots"],
        [
            (
                r.queue,
                r.requested,
                r.ready,
                _age(r.oldest),
                r.running,
                r.workers,
                r.slots,
            )
            for r in routes
        ],
        empty="No execution waits for a worker, and no worker is online.",
    )
    if lines:
        out.print()
        table(
            ["limit", "key", "in use", "of", "waiting", "longest wait", "started per minute"],
            [
                (r.limit or r.gate, _whose(r), r.held, r.max, r.waiting, _age(r.oldest), _pace(r))
                for r in lines
            ],
        )  # fmt: skip
        if len(lines) == limit:
            out.print(f"[dim]There may be more: penstock queues --limit {10 * limit}[/dim]")


def _age(seconds: float | None) -> str:
    return "" if seconds is None else span(seconds)


def _pace(line: WaitingLine) -> str:
    return f"{line.per_minute:.0f}" if line.per_minute else ""


def _whose(line: WaitingLine) -> Any:
    if line.limit is None:
        return f"no live worker runs {line.namespace}" if line.namespace else "limits have changed"
    return group_text(line.group_value, line.by)


def add_to(app: typer.Typer) -> None:
    app.command()(why)
    app.command()(queues)
