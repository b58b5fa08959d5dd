"""The answer for an execution that has ended."""

from __future__ import annotations

import orjson

from penstock.language.moves import COMPLETED
from penstock.operate.why.answer import Why, count, span, why_of
from penstock.settings import Settings
from penstock.store.executions.executions import Execution
from penstock.store.session import clock
from penstock.store.session.database import Session


async def ended(session: Session, row: Execution, settings: Settings) -> Why:
    assert row.finished_at is not None
    age = await clock.seconds_since(session, row.finished_at)
    duration = (row.finished_at - row.created_at).total_seconds()
    error = orjson.loads(row.error) if row.error else None
    why = ""
    if row.status != COMPLETED:
        message = f"{error.get('type')}: {error.get('message')}" if error else None
        why = f" ({row.reason or message or 'no reason was given'})"
    tries = f", {count(row.attempt, 'attempt')}" if row.attempt else ""
    says = f"It waits for nothing: it ended as {row.status}{why} {span(age)} ago, {span(duration)} after it was requested{tries}."
    return why_of(
        row, "ended", says, ended_at=row.finished_at, seconds=duration, reason=row.reason, error=error
    )
