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
    if row.attempt and not await _is_durable(session, row):
        attempts = f", in {count(row.attempt, 'attempt')}"
    clause = f"{VERBS[row.status]} {span(age)} ago" + (f": {failure}" if failure else "")
    details = [f"It took {span(duration)} from creation to end{attempts}."]
    if failure and row.status == FAILED:
        details.append(f"Run it again with: penstock rerun {row.id}")
    return why_of(
        row,
        "ended",
        clause,
        *details,
        ended_at=row.finished_at,
        seconds=duration,
        reason=row.reason,
        error=error,
    )


async def _is_durable(session: Session, row: Execution) -> bool:
    """Return whether the execution is of a durable function. It has an attempt more for each wait, so their number says nothing
    about failures."""
    body = (await catalog.bodies(session, [row.definition_id])).get(row.definition_id, {})
    return "durable" in body
