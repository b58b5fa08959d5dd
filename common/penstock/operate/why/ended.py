"""The answer for an execution that has ended."""

from __future__ import annotations

import orjson

from penstock.language.moves import ABANDONED, CANCELLED, COMPLETED, FAILED, SKIPPED, TIMEOUT
from penstock.operate.executions import failure_of
from penstock.operate.why.answer import Why, count, span, why_of
from penstock.settings import Settings
from penstock.store.definitions import catalog
from penstock.store.executions.executions import Execution
from penstock.store.session import clock
from penstock.store.session.database import Session
from penstock.store.workflows import workflow_runs

VERBS = {
    COMPLETED: "completed",
    FAILED: "failed",
    TIMEOUT: "timed out",
    CANCELLED: "was cancelled",
    ABANDONED: "was abandoned",
    SKIPPED: "was skipped",
}


async def ended(session: Session, row: Execution, settings: Settings) -> Why:
    assert row.finished_at is not None
    age = await clock.seconds_since(session, row.finished_at)
    duration = (row.finished_at - row.created_at).total_seconds()
    error = orjson.loads(row.error) if row.error else None
    failure = failure_of(row)
    attempts = ""
    body = (await catalog.bodies(session, [row.definition_id])).get(row.definition_id, {})
    is_durable = "durable" in body
    # A durable function has one more attempt after each wait, so its number of attempts does not count failures.
    if row.attempt and not is_durable:
        attempts = f", in {count(row.attempt, 'attempt')}"
    clause = f"{VERBS[row.status]} {span(age)} ago" + (f": {failure}" if failure else "")
    details = [f"The execution took {span(duration)} from creation to end{attempts}."]
    reruns = [sent for sent in await workflow_runs.commands(session, row.id) if sent.kind == "rerun"]
    if reruns:
        details.append(f"It was rerun as {reruns[-1].value['as']}, by {reruns[-1].by}.")
    elif failure and row.status in (FAILED, TIMEOUT, ABANDONED):
        keeps = " --from-failed" if is_durable or body.get("kind") == "workflow" else ""
        details.append(f"Run it again with: penstock rerun {row.id}{keeps}")
    return why_of(
        row,
        "ended",
        clause,
        *details,
        ended_at=row.finished_at,
        seconds=duration,
        reason=row.reason,
        error=error,
        rerun=reruns[-1].value["as"] if reruns else None,
    )
