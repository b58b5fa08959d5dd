"""The page of an execution: the reason for its status, its tasks, its output, and the commands that can be sent to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Any
from uuid import UUID

import orjson
from fastapi import APIRouter, Body, Request, Response

from penstock.client.inquiries import may_answer, with_masked_answer
from penstock.language.moves import (
    BAD,
    CANCELLED,
    COMPLETED,
    FINAL,
    QUEUED,
    REQUESTED,
    RUNNING,
    SCHEDULED,
    WAITING,
)
from penstock.language.schemas.secrets import masked_schema
from penstock.language.workflows.progress import TaskProgress
from penstock.operate.access import Caller
from penstock.operate.durable_steps import TIMED_OUT, Step
from penstock.operate.executions import described_execution
from penstock.operate.wait_clauses import SLEEP_END
from penstock.operate.why import why
from penstock.operate.why.answer import Why
from penstock.operate.why.workflow import ANSWER_WHILE_PAUSED
from penstock.operate.workflow_tree import names_inside
from penstock.store.definitions import catalog
from penstock.store.executions import effects, executions, inquiries, log_lines, timelines
from penstock.store.executions.executions import Execution, Move
from penstock.store.executions.inquiries import Inquiry
from penstock.store.executions.timelines import Stay
from penstock.store.session.database import Session
from penstock.store.session.noted_clock import noted
from penstock.store.workflows import workflow_runs
from penstock_api.auth.access import READ, Asked, ExecutionId
from penstock_api.backend import Db, Here
from penstock_api.live.changes import Watched
from penstock_api.pages.drawings.layout import layout
from penstock_api.pages.drawings.step_timeline import (
    ENDED,
    child_durations,
    step_ends,
    step_status,
    step_timeline,
)
from penstock_api.pages.drawings.timeline import Timeline, timeline
from penstock_api.pages.page import PageRouter, page
from penstock_api.pages.schema_form import Field, fields
from penstock_api.pages.starters import other_values, starters

router: APIRouter = PageRouter("executions")

MOVES = 200
"""The number of newest moves of the history to show."""
FOLLOWED = 300
"""The number of executions whose log lines are read at once: the execution itself, and the oldest ones inside it."""
STEPS = 300
"""The number of newest steps of a durable function to list."""
FAILURES = BAD | {CANCELLED}
"""The statuses of a task that count as its failure."""
AT_ONCE = timedelta(seconds=1)
"""The maximum time between the submission of a workflow and its start, if nothing delays it."""
QUEUED_REASON = "waits for a limit or a worker"
"""The reason of a status `queued` in the history."""
REASONS = {QUEUED: QUEUED_REASON, SCHEDULED: "ready for a worker"}
"""The reasons of moves that the database stores without one."""


@router.get("/executions/{id}", dependencies=[READ])
async def show(id: ExecutionId, request: Request, backend: Here, session: Db, caller: Asked) -> Response:
    """Show the whole page of an execution."""
    document = await described_execution(session, id)
    answer = await why(session, id, backend.settings)
    inquiry = await inquiries.find(session, id)
    is_answered = inquiry is not None and inquiry.answered_at is not None
    question = await _open_inquiry(session, answer, id)
    if caller.tenants is not None:
        answer = answer.of_one_tenant()
    row = await executions.get(session, id)
    history = await executions.history(session, row)
    tasks: list[TaskProgress] = document["tasks"]
    steps: list[Step] = document["steps"]
    open_ = document["status"] not in FINAL
    body = (await catalog.bodies(session, [row.definition_id])).get(row.definition_id, {})
    stays = await timelines.inside(session, row, sorted(FINAL)) if _has_children(tasks, steps) else []
    steps_timeline = step_timeline(steps, row.created_at, row.finished_at, stays)
    durations = child_durations(steps, steps_timeline)
    return page(
        request,
        "execution.html",
        run=document,
        open=open_,
        why=answer,
        history=shown_moves(history, _line(answer), is_workflow=document["graph"] is not None)[-MOVES:],
        earlier=max(0, len(history) - MOVES),
        layout=None if document["graph"] is None else layout(document["graph"]),
        statuses={task.name: task for task in tasks},
        counts=_counted(tasks, document),
        timeline=_timeline(row, tasks, stays),
        steps=steps[-STEPS:],
        step_status=partial(step_status, is_final=not open_),
        step_ends=step_ends(steps, stays, durations),
        timed_out=TIMED_OUT,
        earlier_steps=max(0, len(steps) - STEPS),
        steps_timeline=steps_timeline,
        child_durations=durations,
        steps_left=[step.label for step in steps[-STEPS:] if step.status not in ENDED],
        continuations=_continuations(document) if document["durable"] else 0,
        max_effects=effects.MAX_EFFECTS,
        paused=await workflow_runs.is_paused(session, id),
        inquiry=None if question is None else await _question(session, question, caller),
        sleep_end=SLEEP_END,
        answer_while_paused=ANSWER_WHILE_PAUSED,
        answered=with_masked_answer(inquiry) if inquiry is not None and is_answered else None,
        starters=starters(document["origin"]),
        reruns=[sent["value"]["as"] for sent in document["told"] if sent["kind"] == "rerun"],
        origin=other_values(document["origin"]),
        rerun_fields=[] if open_ else _rerun_fields(body.get("parameters"), document["params"]),
        rerun_labels=_staying_labels(body, document["options"]),
        begins=document["status"] == REQUESTED and row.not_before is not None,
        begun=document["status"] not in (REQUESTED, QUEUED, SCHEDULED),
        signals=answer.facts.get("signals", ()),
        waits_outside=answer.because == "outside",
        left=[task.name for task in tasks if task.status not in FINAL],
        watched=Watched(execution=id),
        every=2 if open_ else None,
    )


@dataclass(frozen=True, slots=True)
class ShownMove:
    """A change of status on the page. `again`: the execution had this status before. `actor` is the kind and the name of a
    process."""

    status: str
    at: datetime
    again: bool
    actor: str
    reason: str | None


def _line(answer: Why | None) -> str:
    """Return the reason of a queued execution: the limit that it waits for now, if the answer names it."""
    limit = None if answer is None else answer.facts.get("limit")
    return QUEUED_REASON if limit is None else f"waits for the limit {limit}"


def shown_moves(history: Sequence[Move], line: str, *, is_workflow: bool) -> list[ShownMove]:
    """Return the changes of status for the page. A reason is shown once, and not repeated by the changes that follow.
    `line` is the reason of an execution that is queued now."""
    moves: list[ShownMove] = []
    for number, move in enumerate(history):
        reason = move.reason
        if reason is not None and number and reason == history[number - 1].reason:
            reason = None
        elif reason is None and is_workflow:
            reason = _workflow_reason(move, history[0])
        if reason is None and move.new == QUEUED and number + 1 == len(history):
            reason = line
        elif reason is None:
            reason = REASONS.get(move.new) if number or move.new != REQUESTED else "created"
        actor = (move.actor or "").replace(":", " ", 1)
        again = any(earlier.status == move.new for earlier in moves)
        moves.append(ShownMove(move.new, move.at, again, actor, reason))
    return moves


def _workflow_reason(move: Move, first: Move) -> str | None:
    """Return the reason why a workflow got a status. No worker runs it, so readers would miss one."""
    if move.new == RUNNING and move.old == REQUESTED:
        is_at_once = move.actor == first.actor and move.at - first.at < AT_ONCE
        return (
            "started at once: a workflow needs no worker"
            if is_at_once
            else "the tasks of the workflow can start"
        )
    return "the last task of the workflow has ended" if move.new == COMPLETED else None


def _continuations(document: Mapping[str, Any]) -> int:
    """Return how many attempts of a durable function continued it after a wait."""
    earlier = (entry for entry in document["attempts"] if entry["attempt"] < document["attempt"])
    return sum(entry["outcome"] == WAITING for entry in earlier)


def _rerun_fields(schema: Any, params: Any) -> list[Field]:
    """Return the fields of a re-run, with the masked parameters. None of them is required: one that stays as it is keeps its
    value, also a secret."""
    masked = masked_schema(schema) if isinstance(schema, Mapping) else schema
    return [replace(field, required=False) for field in fields(masked, "parameters", value=params)]


def _staying_labels(body: Mapping[str, Any], options: Mapping[str, Any] | None) -> list[str]:
    """Return the labels of the start or the rule that a re-run keeps, as texts."""
    labels = (options or {}).get("labels", {})
    return [f"{key}={value}" for key, value in labels.items() if key not in body.get("searchable", ())]


def _counted(tasks: list[TaskProgress], document: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of tasks by status. A completed workflow has allowed or handled each failure of a task."""
    counts: dict[str, int] = {}
    for task in tasks:
        word = task.shown_status
        if document["status"] == COMPLETED and word in FAILURES:
            graph = document["graph"]
            is_allowed = graph[graph.index[task.name]].step.allow_failure
            word = f"{word} ({'allowed' if is_allowed else 'handled'})"
        counts[word] = counts.get(word, 0) + 1
    return counts


def _has_children(tasks: list[TaskProgress], steps: list[Step]) -> bool:
    """Return True for a workflow, and for a durable function with a step that is a child execution."""
    return bool(tasks) or any(step.execution is not None for step in steps)


def _timeline(row: Execution, tasks: list[TaskProgress], stays: list[Stay]) -> Timeline | None:
    if not tasks:
        return None
    start = min([row.created_at, *(task.begun for task in tasks if task.begun is not None)])
    return timeline(tasks, stays, row.id, start, row.finished_at or noted())


async def _open_inquiry(session: Session, answer: Why, id: UUID) -> Inquiry | None:
    """Return the open inquiry that the execution waits for in the end: its own, or that of an execution inside it. If the
    execution is paused, or waits for something else first, return the oldest open inquiry inside it."""
    cause = answer if answer.cause is None else answer.cause
    inquiry = await inquiries.find(session, cause.id) if cause.because == "inquiry" else None
    if inquiry is None and answer.status in (RUNNING, WAITING):
        inquiry = await inquiries.open_inside(session, id)
    return None if inquiry is None or inquiry.status != "created" else with_masked_answer(inquiry)


async def _question(session: Session, inquiry: Inquiry, caller: Caller) -> dict[str, Any]:
    """Return an open inquiry, the fields of its answer, whether the caller may answer, and the paused workflow around it."""
    schema = None if inquiry.schema is None else orjson.loads(inquiry.schema)
    mine = may_answer(inquiry.assignee, caller.name)
    paused = await workflow_runs.paused_around(session, inquiry.execution_id)
    return {"row": inquiry, "fields": fields(schema, "response"), "mine": mine, "paused": paused}


@router.post("/executions/{id}/lines", dependencies=[READ])
async def lines(
    id: ExecutionId, session: Db, after: Annotated[dict[UUID, tuple[int, int]], Body(embed=True)]
) -> dict[str, Any]:
    """Return the log lines of the execution and its tasks, `after` the last line of each (attempt, number) that the
    page has."""
    complete = await log_lines.are_all_there(session, (await executions.get(session, id)).finished_at)
    names = await names_inside(session, id)
    oldest = sorted(names.keys() - {id})[: FOLLOWED - 1]
    followed = {member: names[member] for member in (id, *oldest)}
    read = await log_lines.after_each(session, {member: after.get(member, (0, -1)) for member in followed})
    return {
        "lines": [
            {
                "id": of,
                "task": followed[of],
                "attempt": line.attempt,
                "seq": line.seq,
                "stream": line.stream,
                "line": line.line,
                "at": line.at,
            }
            for of, line in read
        ],
        "left_out": max(0, len(names) - FOLLOWED),
        "ended": complete and len(read) < log_lines.PAGE,
    }
