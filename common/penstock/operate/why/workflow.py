"""The answers for workflows: the tasks that they wait for, and what those tasks wait for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any
from uuid import UUID

import orjson

from penstock.errors import NotFound
from penstock.language.moves import FAILED, FINAL, SKIPPED
from penstock.language.moves.workflows import STOPPING
from penstock.operate import wait_clauses
from penstock.operate.why import presence
from penstock.operate.why.answer import DEEPEST, RUNS_CHILD, URGENCY, Child, Why, as_sentence, count, why_of
from penstock.operate.why.given_up import given_up
from penstock.settings import Settings
from penstock.store.definitions import catalog
from penstock.store.executions import executions, inquiries, listed_waits
from penstock.store.executions.executions import Execution
from penstock.store.outbox.queues import EXECUTION_COMPLETED, WORKFLOW_STARTED
from penstock.store.session.database import Session
from penstock.store.workflows import open_tasks, workflow_runs
from penstock.store.workflows.open_tasks import OpenTask, WorkflowHead

if TYPE_CHECKING:
    from penstock.language.workflows.graph import Graph, Node

NOT_BEGUN = "not begun"
DUE = "due"
"""The stored status of a task that has not started, since its workflow is paused or has no room for it."""
ANSWER_WHILE_PAUSED = "You can answer now. The tasks after the question start when the workflow is resumed."
"""The effect of an answer to a question of a paused workflow."""


async def running(session: Session, row: Execution, settings: Settings) -> Why:
    tasks = await open_tasks.listed(session, row.id)
    head_row = await open_tasks.head(session, row.id)
    head: Mapping[str, Any] = orjson.loads(head_row.head) if head_row and head_row.head else {}
    facts: dict[str, Any] = {"open": [asdict(task) for task in tasks], "tasks_left": head.get("left")}
    child = await _first_child(session, row, tasks)
    tasks = await _with_pauses(session, tasks)
    if head_row and (clause := _stopped_by(head_row, head)):
        facts |= {"stop": head_row.stop_status or FAILED, "reason": head_row.stop_reason}
        if child is None:
            return why_of(row, "stopping", clause, **facts)
        return why_of(
            row, "stopping", f"{clause}, and still runs", *_further(tasks, child), child=child, **facts
        )
    if head.get("paused"):
        first = await open_tasks.paused_first(session, row.id)
        pause = await open_tasks.last_pause(session, first)
        facts |= {"paused_by": pause.by if pause else None}
        details = [f"Resume it with: penstock resume {first}"]
        if tasks:
            details.append(f"Tasks that are still open: {_listed(tasks)}.")
        if ready := await _ready(session, row):
            facts["ready"] = ready
            details.append(f"These tasks start when the workflow is resumed: {_named(ready)}.")
        if inquiry := await inquiries.open_inside(session, row.id):
            question = as_sentence(f"a task {wait_clauses.for_answer(inquiry.prompt, inquiry.assignee)}")
            facts["inquiry"] = inquiry.execution_id
            details += [
                question,
                f"{ANSWER_WHILE_PAUSED} Answer with: penstock answer {inquiry.execution_id} ANSWER",
            ]
        with_outer = "" if first == row.id else " with the workflow around it"
        clause = f"is paused{with_outer}{await paused_by(session, first)}"
        return why_of(row, "paused", clause, *details, **facts)
    if child is not None:
        return why_of(row, "task", RUNS_CHILD, *_further(tasks, child), child=child, **facts)
    if letter := await given_up(session, row.id, [WORKFLOW_STARTED, EXECUTION_COMPLETED], settings):
        return why_of(row, "outage", letter[0], letter[1], dead_letter=letter[2], **facts)
    if not await presence.executors(session, settings):
        return why_of(
            row,
            "outage",
            presence.NO_EXECUTOR,
            "No task of the workflow is running.",
            presence.START_EXECUTOR,
            **facts,
        )
    clause = "waits for an executor to start its next tasks, and none of its tasks is running"
    return why_of(row, "message", clause, **facts)


def _stopped_by(head_row: WorkflowHead, head: Mapping[str, Any]) -> str:
    """Return the clause about a workflow in which nothing more starts; empty if tasks may start."""
    if head_row.stop_status:
        return f"is being stopped ({head_row.stop_reason})"
    if head.get("phase") == STOPPING:
        return "is failing: a task failed and no task handles that, so nothing more starts (`fail_fast`)"
    return ""


async def paused_by(session: Session, workflow: UUID) -> str:
    """Return the words about the user that paused a run of a workflow, and the reason; empty if they are not known."""
    pause = await open_tasks.last_pause(session, workflow)
    if pause is None:
        return ""
    return f" by {pause.by}" + (f" ({pause.reason})" if pause.reason else "")


async def _first_child(session: Session, row: Execution, tasks: Sequence[OpenTask]) -> Child | None:
    """Return the task of a workflow that is named in the answer; None if none is open."""
    if not tasks:
        return None
    way = await open_tasks.most_urgent(session, row.id, None, URGENCY, DEEPEST)
    rows = await executions.find(session, way[:1])
    if not rows:
        return Child(tasks[0].first, "task", tasks[0].task)
    return Child(way[0], "task", rows[0].task or "", way)


async def _with_pauses(session: Session, tasks: Sequence[OpenTask]) -> list[OpenTask]:
    """Return open tasks in which the status of a paused workflow says so."""
    paused = await listed_waits.paused_among(session, [task.first for task in tasks if task.count == 1])
    return [
        replace(task, status=f"{task.status}, paused") if task.count == 1 and task.first in paused else task
        for task in tasks
    ]


def _further(tasks: Sequence[OpenTask], child: Child) -> list[str]:
    """Return a sentence about the open executions besides the child; none if there are no others."""
    besides = [task for task in tasks if task.task != child.name or task.count > 1]
    besides = [replace(task, count=task.count - (task.task == child.name)) for task in besides]
    return [f"Other open tasks: {_listed(besides)}."] if besides else []


def _listed(tasks: Sequence[OpenTask]) -> str:
    text = ", ".join(f"{task.task} ({_how_many(task)})" for task in tasks[:5])
    return text + (f" and {len(tasks) - 5} more" if len(tasks) > 5 else "")


def _how_many(task: OpenTask) -> str:
    return task.status if task.count == 1 else f"{task.count} {task.status}"


async def _ready(session: Session, row: Execution) -> list[str]:
    """Return the tasks of a paused workflow that start when it is resumed, in the order of the graph."""
    due = {task for task, status in (await open_tasks.statuses(session, row.id)).items() if status == DUE}
    graph = await _graph(session, row) if due else None
    return [] if graph is None else [name for name, number in graph.index.items() if number in due]


def _named(tasks: Sequence[str]) -> str:
    return ", ".join(tasks[:5]) + (f" and {len(tasks) - 5} more" if len(tasks) > 5 else "")


async def _graph(session: Session, row: Execution) -> Graph | None:
    """Return the graph of a run of a workflow; None if the execution is none."""
    from penstock.language.workflows import from_body
    from penstock.language.workflows.graph import Graph

    body = (await catalog.bodies(session, [row.definition_id])).get(row.definition_id, {})
    if body.get("kind") != "workflow":
        return None
    return Graph(from_body({name: value for name, value in body.items() if name != "kind"}))


async def child(session: Session, row: Execution, task: str) -> Why | UUID:
    """Return the execution of a task, preferably an open one; if the task has none, the answer why. Raises NotFound
    if the execution is not a workflow or has no such task."""
    graph = await _graph(session, row)
    if graph is None:
        raise NotFound(f"{row.id} is not a workflow", hint="Omit the task.")
    if task not in graph.index:
        near = get_close_matches(task, list(graph.index), n=1)
        hint = (
            f"Did you mean {near[0]!r}?"
            if near
            else f"The workflow has these tasks: {', '.join(graph.index)}."
        )
        raise NotFound(f"{row.action} has no task {task!r}", hint=hint)
    execution = await open_tasks.child(session, row.id, task)
    if execution is not None:
        return execution
    statuses = await _statuses(session, row, graph.index)
    node = graph[graph.index[task]]
    own = statuses.get(task, NOT_BEGUN)
    facts: dict[str, Any] = {"task": task, "task_status": own}
    if own == SKIPPED and (reason := await _skip_reason(session, row, graph, node)):
        return why_of(row, "ended", f"task {task!r} was skipped: {reason}", **facts, skipped_because=reason)
    if own in FINAL:
        return why_of(
            row, "ended", f"task {task!r} has the status {own}, and no execution of its own", **facts
        )
    if row.finished_at is not None:
        return why_of(row, "ended", f"task {task!r} never began: its workflow is {row.status}", **facts)
    head_row = await open_tasks.head(session, row.id)
    head = orjson.loads(head_row.head) if head_row and head_row.head else {}
    if head_row and (clause := _stopped_by(head_row, head)):
        return why_of(row, "stopping", f"task {task!r} does not start: its workflow {clause}", **facts)
    if own == DUE:
        return why_of(
            row,
            "paused",
            f"task {task!r} starts when its workflow is resumed and has room for it",
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
            f"all tasks before task {task!r} have ended, and an executor starts or skips it next",
            **facts,
        )
    listed = ", ".join(f"{name} ({status})" for name, status in list(waits_for.items())[:5])
    suffix = f" and {len(waits_for) - 5} more" if len(waits_for) > 5 else ""
    clause = f"task {task!r} waits for {count(len(waits_for), 'task')} of its workflow: {listed}{suffix}"
    return why_of(row, "dependency", clause, **facts)


async def _skip_reason(session: Session, row: Execution, graph: Graph, node: Node) -> str | None:
    """Return the reason why a task was skipped; None if it is not known."""
    from penstock.language.workflows.skip_reason import skip_reason

    stored = await workflow_runs.tasks(session, row.id)
    state = stored[node.index].skipped
    statuses = {index: task.status for index, task in stored.items()}
    return None if state is None else skip_reason(graph, node, state, statuses)


async def _statuses(session: Session, row: Execution, index: Mapping[str, int]) -> dict[str, str]:
    """Return the statuses of the tasks that have begun, or that follow an ended task, by name."""
    names = {number: name for name, number in index.items()}
    stored = await open_tasks.statuses(session, row.id)
    by_name = {names[task]: status or NOT_BEGUN for task, status in stored.items() if task in names}
    for open_task in await open_tasks.listed(session, row.id):
        by_name[open_task.task] = open_task.status
    return {name: NOT_BEGUN if status == "pending" else status for name, status in by_name.items()}
