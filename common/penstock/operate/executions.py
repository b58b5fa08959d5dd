"""Executions for display, with secrets masked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any
from uuid import UUID

import orjson

from penstock.errors import InvalidInput
from penstock.language.moves import COMPLETED
from penstock.language.schemas import mask
from penstock.language.terms.waits import WAIT_FOR_EVENT
from penstock.language.workflows.diagram import to_dot, to_mermaid
from penstock.language.workflows.progress import TaskProgress
from penstock.operate.awaited_events import shown_event, shown_parameters
from penstock.operate.durable_steps import steps_and_state
from penstock.operate.masking import Masking
from penstock.operate.titles import defaults_of, title_of, waits_of, with_defaults
from penstock.operate.workflow_tree import graph_of, sent_commands, tree
from penstock.run.progress import STREAM, Progress
from penstock.run.root_cause import failure_sentence
from penstock.store.admission import budgets
from penstock.store.definitions import catalog
from penstock.store.executions import (
    effects,
    executions,
    inquiries,
    labels,
    log_lines,
    outside_waits,
    past_attempts,
)
from penstock.store.executions.executions import NEVER, Execution
from penstock.store.session.database import Session
from penstock.store.workflows import workflow_runs

DRAWINGS = {"mermaid": to_mermaid, "dot": to_dot}
"""The function that draws a graph in each notation."""


async def ending(session: Session, id: UUID) -> dict[str, Any]:
    """Return an execution's `id` and `status`, whether it has `finished`, its `result` or `error`, and the sentence
    about its `failure`. Raises NotFound if no execution has this id."""
    row = await executions.get(session, id)
    return {
        "id": row.id,
        "status": row.status,
        "finished": row.finished_at is not None,
        "result": await _shown_result(session, row),
        "error": orjson.loads(row.error) if row.error is not None else None,
        "failure": failure_of(row),
    }


def failure_of(row: Execution) -> str | None:
    """Return the sentence that names the cause of an execution's failure; None if it completed or has not ended."""
    if row.finished_at is None or row.status == COMPLETED:
        return None
    return failure_sentence(row.status, orjson.loads(row.error) if row.error else None, row.reason)


async def described(session: Session, id: UUID) -> dict[str, Any] | None:
    """Return an execution with its attempts and the commands sent to it, secrets masked; None if it does not exist.
    For a workflow, also its `graph` and `tasks`; for a `durable` function, its `steps` and its `state`."""
    rows = await executions.find(session, [id])
    if not rows:
        return None
    document = {name: value for name, value in asdict(rows[0]).items() if name != "claim"}
    for name in ("params", "options", "origin", "error"):
        document[name] = orjson.loads(document[name]) if document[name] is not None else None
    document["failure"] = failure_of(rows[0])
    if document["not_before"] == NEVER:  # it is held, and the reason says so
        document["not_before"] = None
    waits, paused = await waits_of(session, {id: rows[0].status})
    document["waits_for"], document["paused"] = waits.get(id), id in paused
    document["trace"] = _shown_trace(rows[0], session.settings.trace_url)
    document["origin"] = _without_trace(document["origin"])
    definition = document.pop("definition_id")
    body = (await catalog.bodies(session, [definition])).get(definition)
    masking = await Masking.load(session)
    document["title"] = _title(masking, document["action"], document["params"], body or {})
    document["params"] = await _shown_parameters(session, masking, rows[0], document["params"])
    document["key"] = await executions.key_of(session, id)
    document["labels"] = await labels.of_execution(session, id, rows[0].finished_at)
    document["result"] = await _shown_result(session, rows[0], masking)
    document["graph"] = graph_of(body)
    document["waited"], document["ran"] = await executions.waited_and_ran(session, rows[0])
    document["tasks"] = []
    if document["graph"] is not None:
        ran, by_task = await workflow_runs.ran(session, rows[0])
        document["tasks"] = await tree(session, rows[0], document["graph"], by_task)
        # A workflow counts as waiting while none of its tasks runs.
        if document["ran"] is not None:
            document["waited"] = max(0.0, document["waited"] + document["ran"] - ran)
            document["ran"] = ran
    document["durable"] = body is not None and "durable" in body
    document["steps"], document["state"] = (
        await steps_and_state(session, id) if document["durable"] else ([], {})
    )
    document["progress"] = await _progress(session, id)
    document["told"] = await sent_commands(session, id)
    document["budgets"] = [
        {**asdict(budget), "remaining": budget.remaining} for budget in await budgets.budgets_of(session, id)
    ]
    document["effects"] = [asdict(effect) for effect in await effects.caused(session, id)]
    document["attempts"] = [
        {name: getattr(row, name) for name in row.__slots__}
        | {"error": orjson.loads(row.error) if row.error else None}
        for row in await past_attempts.attempts(session, rows[0])
    ]
    return document


def _title(masking: Masking, action: str, params: Any, body: Mapping[str, Any]) -> str | None:
    if "title" not in body:
        return None
    whole = with_defaults(params, defaults_of(body.get("parameters")))
    return title_of(body["title"], masking.parameters(action, whole))


async def _shown_parameters(session: Session, masking: Masking, row: Execution, params: Any) -> Any:
    if row.action != WAIT_FOR_EVENT:
        return masking.parameters(row.action, params)
    starters = await executions.find(session, [row.parent]) if row.parent is not None else []
    return shown_parameters(masking, params or {}, starters[0].action if starters else None)


async def _shown_result(session: Session, row: Execution, masking: Masking | None = None) -> Any:
    """Return the result of an execution for display. `masking` is loaded if it is needed and not passed."""
    result = orjson.loads(row.result) if row.result is not None else None
    if row.action == WAIT_FOR_EVENT:
        masking = masking or await Masking.load(session)
        return shown_event(masking, orjson.loads(row.params or "{}").get("trigger", ""), result)
    inquiry = await inquiries.find(session, row.id)
    # The result is the answer of the inquiry, so the inquiry's schema marks its secrets.
    if inquiry is not None and inquiry.schema is not None:
        return mask(result, orjson.loads(inquiry.schema))
    return result


def _shown_trace(row: Execution, shown_at: str | None) -> dict[str, Any] | None:
    """Return the id of the execution's trace, and the URL that shows it; None if it is not traced."""
    if row.trace is None:
        return None
    id = row.trace.hex
    return {"id": id, "url": shown_at.replace("{trace_id}", id) if shown_at else None}


def _without_trace(origin: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the origin without its trace."""
    return {name: value for name, value in (origin or {}).items() if name != "trace"} or None


async def _progress(session: Session, id: UUID) -> dict[str, Any] | None:
    """Return the last reported progress: `done` from 0 to 1, `text`, `at`, and the `attempt` that reported it."""
    wait = await outside_waits.find(session, id)
    if wait is not None and wait.progress is not None:
        latest = {"done": wait.progress, "text": wait.progress_text or ""}
        return {**latest, "at": wait.progress_at, "attempt": wait.attempt}
    line = await log_lines.latest(session, id, STREAM)
    return (
        None
        if line is None
        else {**Progress.read(line.line)._asdict(), "at": line.at, "attempt": line.attempt}
    )


async def described_execution(session: Session, id: UUID) -> dict[str, Any]:
    """Return the execution as `described` does. Raises NotFound if no execution has this id."""
    document = await described(session, id)
    if document is None:
        raise executions.missing(id)
    return document


async def drawing(session: Session, id: UUID, notation: str) -> str:
    """Return the state of a workflow's tasks in Mermaid or Graphviz (`notation`: `mermaid`, `dot`). Raises NotFound if
    no execution has this id. Raises InvalidInput for another notation, or if the execution is not a run of a
    workflow."""
    if notation not in DRAWINGS:
        raise InvalidInput(f"there is no notation {notation!r}", hint=f"Available: {', '.join(DRAWINGS)}.")
    document = await described_execution(session, id)
    if document["graph"] is None:
        raise InvalidInput(
            f"{id} is not a run of a workflow",
            hint="Name an execution of a workflow: only those have a graph.",
        )
    return DRAWINGS[notation](document["graph"], {task.name: task.shown_status for task in document["tasks"]})


def plain(document: dict[str, Any]) -> dict[str, Any]:
    """Return the execution as JSON: the tasks as a tree, and the names of the tasks on the critical path."""
    tasks: list[TaskProgress] = document["tasks"]
    whole = {name: value for name, value in document.items() if name not in ("graph", "tasks")}
    if not document["steps"]:
        del whole["steps"], whole["state"]
    if not tasks:
        return whole
    path = [task.name for task in tasks if task.critical]
    return whole | {"tasks": [task.as_json() for task in tasks], "critical_path": path}
