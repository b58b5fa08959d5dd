"""Workflows: which of their tasks they wait for, and which tasks those wait for."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any
from uuid import UUID

import orjson

from penstock.errors import NotFound
from penstock.moves import FINAL
from penstock.operate.why import presence
from penstock.operate.why.answer import Reason, Why, count, why_of
from penstock.settings import Settings
from penstock.store import catalog
from penstock.store.database import Row, Session

HEAD = """
select head::text as head, stop_status, stop_reason, w.definition_id from workflow w where execution_id = $1
"""
OPEN = """
select e.task, e.status, count(*) as count, (array_agg(e.id order by e.ready_at, e.id))[1] as first
from execution e where e.parent = $1 and e.finished_at is null group by e.task, e.status order by min(e.created_at), 2
"""
RECORDS = "select task, record ->> 'status' as status from workflow_task where execution_id = $1"
PAUSED = """
select by, reason from workflow_command
where execution_id = $1 and kind = 'pause' and obeyed_at is not null and error is null order by id desc limit 1
"""
CHILDREN = """
select id, status, finished_at is null as open, item from execution where parent = $1 and task = $2
order by finished_at is not null, ready_at, id limit 1
"""
NOT_BEGUN = "not begun"


async def running(session: Session, row: Row, settings: Settings) -> Why:
    open_tasks = [dict(task) for task in await session.fetch(OPEN, row["id"])]
    heads = await session.fetch(HEAD, row["id"])
    head: Mapping[str, Any] = orjson.loads(heads[0]["head"]) if heads and heads[0]["head"] else {}
    facts: dict[str, Any] = {"open": open_tasks, "tasks_left": head.get("left")}
    doing = ", ".join(f"{t['task']} ({_how_many(t)})" for t in open_tasks[:5])
    if len(open_tasks) > 5:
        doing += f" and {len(open_tasks) - 5} more"
    reason: Reason = "task"
    if heads and heads[0]["stop_status"]:
        facts |= {"stop": heads[0]["stop_status"], "reason": heads[0]["stop_reason"]}
        reason, says = "stopping", f"It is ending ({heads[0]['stop_reason']})"
        says += f" and waits for its tasks that run: {doing}." if doing else "."
    elif head.get("paused"):
        who = await session.fetch(PAUSED, row["id"])
        by = f" by {who[0]['by']}" if who else ""
        told = f" ({who[0]['reason']})" if who and who[0]["reason"] else ""
        facts |= {"paused_by": who[0]["by"] if who else None}
        reason, says = (
            "paused",
            f"It is paused{by}{told}. Resume it with: penstock resume {row['id']}",
        )
        says += f" Still under way: {doing}." if doing else ""
    elif doing:
        first = open_tasks[0]
        says = f"Waits for its {'task' if len(open_tasks) == 1 else 'tasks'} {doing}. See why: penstock why {first['first']}"
    else:
        says = "Nothing of it is under way: an executor is about to start its next tasks."
        reason = "message"
    if not doing and not await presence.executors(session, settings):
        return why_of(row, "outage", f"Nothing of it is under way. {presence.NO_EXECUTOR}", **facts)
    return why_of(row, reason, says, **facts)


def _how_many(task: Mapping[str, Any]) -> str:
    return str(task["status"]) if task["count"] == 1 else f"{task['count']} {task['status']}"


async def child(session: Session, row: Row, task: str) -> Why | UUID:
    """The execution of a task that waits or, if none does, ended; or, where it has none, why. Raises NotFound for
    something that is no workflow or has no such task."""
    from penstock.language.workflows import from_body
    from penstock.language.workflows.graph import Graph

    body = (await catalog.bodies(session, [row["definition_id"]])).get(row["definition_id"], {})
    if body.get("kind") != "workflow":
        raise NotFound(f"{row['id']} is no workflow", hint="Ask without the task.")
    graph = Graph(from_body({name: value for name, value in body.items() if name != "kind"}))
    if task not in graph.index:
        near = get_close_matches(task, list(graph.index), n=1)
        hint = f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(graph.index)}."
        raise NotFound(f"{row['action']} has no task {task!r}", hint=hint)
    children = await session.fetch(CHILDREN, row["id"], task)
    if children:
        return UUID(str(children[0]["id"]))
    statuses = await _statuses(session, row, graph.index)
    node = graph[graph.index[task]]
    own = statuses.get(task, NOT_BEGUN)
    facts: dict[str, Any] = {"task": task, "task_status": own}
    if own in FINAL:
        return why_of(row, "ended", f"Task {task} has ended as {own}, without an execution.", **facts)
    if row["finished_at"] is not None:
        return why_of(row, "ended", f"Task {task} never began: its workflow is {row['status']}.", **facts)
    if own == "due":
        return why_of(
            row,
            "paused",
            f"Task {task} is to start, once its workflow is not paused and it is its turn.",
            **facts,
        )
    names = [graph[source].name for source in node.sources] or [
        name for name in graph.index if name != task and statuses.get(name, NOT_BEGUN) not in FINAL
    ]
    pending = {name: statuses.get(name, NOT_BEGUN) for name in names}
    waits_for = {name: status for name, status in pending.items() if status not in FINAL}
    facts["waits_for"] = waits_for
    if not waits_for:
        return why_of(
            row,
            "message",
            f"Nothing stands before task {task} any more: an executor is about to decide on it.",
            **facts,
        )
    shown = ", ".join(f"{name} ({status})" for name, status in list(waits_for.items())[:5])
    more = f" and {len(waits_for) - 5} more" if len(waits_for) > 5 else ""
    says = f"Task {task} waits for {count(len(waits_for), 'task')} of its workflow: {shown}{more}."
    return why_of(row, "dependency", says, **facts)


async def _statuses(session: Session, row: Row, index: Mapping[str, int]) -> dict[str, str]:
    """How the tasks are that have begun or of which something before them has ended."""
    names = {number: name for name, number in index.items()}
    found = {
        names[r["task"]]: r["status"] or NOT_BEGUN
        for r in await session.fetch(RECORDS, row["id"])
        if r["task"] in names
    }
    for task in await session.fetch(OPEN, row["id"]):
        found[task["task"]] = task["status"]
    return {name: NOT_BEGUN if status == "pending" else status for name, status in found.items()}
