"""The answers for workflows: the tasks that they wait for, and what those tasks wait for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from difflib import get_close_matches
from typing import Any
from uuid import UUID

import orjson

from penstock.errors import NotFound
from penstock.language.moves import FINAL
from penstock.operate.why import presence
from penstock.operate.why.answer import Reason, Why, count, why_of
from penstock.operate.why.given_up import given_up
from penstock.settings import Settings
from penstock.store.definitions import catalog
from penstock.store.executions.executions import Execution
from penstock.store.outbox.queues import EXECUTION_COMPLETED, WORKFLOW_STARTED
from penstock.store.session.database import Session
from penstock.store.workflows import open_tasks
from penstock.store.workflows.open_tasks import OpenTask

NOT_BEGUN = "not begun"


async def running(session: Session, row: Execution, settings: Settings) -> Why:
    tasks = await open_tasks.listed(session, row.id)
    head_row = await open_tasks.head(session, row.id)
    head: Mapping[str, Any] = orjson.loads(head_row.head) if head_row and head_row.head else {}
    facts: dict[str, Any] = {"open": [asdict(task) for task in tasks], "tasks_left": head.get("left")}
    doing = ", ".join(f"{task.task} ({_how_many(task)})" for task in tasks[:5])
    if len(tasks) > 5:
        doing += f" and {len(tasks) - 5} more"
    reason: Reason = "task"
    if head_row and head_row.stop_status:
        facts |= {"stop": head_row.stop_status, "reason": head_row.stop_reason}
        reason, says = "stopping", f"It is ending ({head_row.stop_reason})"
        says += f" and waits for its tasks that run: {doing}." if doing else "."
    elif head.get("paused"):
        pause = await open_tasks.last_pause(session, row.id)
        by = f" by {pause.by}" if pause else ""
        reason_text = f" ({pause.reason})" if pause and pause.reason else ""
        facts |= {"paused_by": pause.by if pause else None}
        reason, says = (
            "paused",
            f"It is paused{by}{reason_text}. Resume it with: penstock resume {row.id}",
        )
        says += f" Still under way: {doing}." if doing else ""
    elif doing:
        first = tasks[0]
        says = f"Waits for its {'task' if len(tasks) == 1 else 'tasks'} {doing}. See why: penstock why {first.first}"
    elif letter := await given_up(session, row.id, [WORKFLOW_STARTED, EXECUTION_COMPLETED], settings):
        reason, says, facts["dead_letter"] = "outage", *letter
    else:
        says = "Nothing of it is under way: an executor is about to start its next tasks."
        reason = "message"
    if not doing and not await presence.executors(session, settings):
        return why_of(row, "outage", f"Nothing of it is under way. {presence.NO_EXECUTOR}", **facts)
    return why_of(row, reason, says, **facts)


def _how_many(task: OpenTask) -> str:
    return task.status if task.count == 1 else f"{task.count} {task.status}"


async def child(session: Session, row: Execution, task: str) -> Why | UUID:
    """Return the execution of a task, preferably an open one; if the task has none, the answer why. Raises NotFound
    if the execution is not a workflow or has no such task."""
    from penstock.language.workflows import from_body
    from penstock.language.workflows.graph import Graph

    body = (await catalog.bodies(session, [row.definition_id])).get(row.definition_id, {})
    if body.get("kind") != "workflow":
        raise NotFound(f"{row.id} is no workflow", hint="Ask without the task.")
    graph = Graph(from_body({name: value for name, value in body.items() if name != "kind"}))
    if task not in graph.index:
        near = get_close_matches(task, list(graph.index), n=1)
        hint = f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(graph.index)}."
        raise NotFound(f"{row.action} has no task {task!r}", hint=hint)
    execution = await open_tasks.child(session, row.id, task)
    if execution is not None:
        return execution
    statuses = await _statuses(session, row, graph.index)
    node = graph[graph.index[task]]
    own = statuses.get(task, NOT_BEGUN)
    facts: dict[str, Any] = {"task": task, "task_status": own}
    if own in FINAL:
        return why_of(row, "ended", f"Task {task} has ended as {own}, without an execution.", **facts)
    if row.finished_at is not None:
        return why_of(row, "ended", f"Task {task} never began: its workflow is {row.status}.", **facts)
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
    listed = ", ".join(f"{name} ({status})" for name, status in list(waits_for.items())[:5])
    suffix = f" and {len(waits_for) - 5} more" if len(waits_for) > 5 else ""
    says = f"Task {task} waits for {count(len(waits_for), 'task')} of its workflow: {listed}{suffix}."
    return why_of(row, "dependency", says, **facts)


async def _statuses(session: Session, row: Execution, index: Mapping[str, int]) -> dict[str, str]:
    """Return the statuses of the tasks that have begun, or that follow an ended task, by name."""
    names = {number: name for name, number in index.items()}
    stored = await open_tasks.statuses(session, row.id)
    by_name = {names[task]: status or NOT_BEGUN for task, status in stored.items() if task in names}
    for open_task in await open_tasks.listed(session, row.id):
        by_name[open_task.task] = open_task.status
    return {name: NOT_BEGUN if status == "pending" else status for name, status in by_name.items()}
