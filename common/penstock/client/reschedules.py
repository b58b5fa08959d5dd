"""The change of the instant at which an execution starts, while no worker has begun it."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from penstock.client.starts import check_instants
from penstock.errors import Conflict, InvalidInput
from penstock.language.terms.durations import seconds
from penstock.store.executions import executions
from penstock.store.session import clock
from penstock.store.session.committed_once import committed_once
from penstock.store.session.database import Session, Transaction, retried

REFUSALS = {
    "ended": (Conflict, "{id} has ended", "Run it again with: penstock rerun {id}"),
    "begun": (
        Conflict,
        "{id} has begun, so its start cannot be moved",
        "`penstock why {id}` says what it does now. End it with: penstock cancel {id}",
    ),
    "held": (
        Conflict,
        "{id} is held, so no instant starts it",
        "`penstock why {id}` names the hold, or the paused workflow. Release that first.",
    ),
    "expires": (
        Conflict,
        "{id} would not start before it expires",
        "Give an earlier instant, or start it again with a later expires_at.",
    ),
}
"""The error, its message and its hint for each outcome that changes nothing."""


async def reschedule(
    session: Session,
    id: UUID,
    at: datetime | None,
    delay: float | timedelta | str | None,
    by: str,
    reason: str | None,
) -> tuple[Transaction, datetime]:
    """Set the start of an execution, or of its next attempt, in one transaction: at once, if neither `at` nor `delay`
    is given. Return the transaction with its messages, and the instant. Raises NotFound if no execution has this id,
    and InvalidInput if `at` and `delay` are both given or out of range. Raises Conflict if the execution has begun or
    ended, is held, or would expire before."""
    if at is not None and delay is not None:
        raise InvalidInput("`delay` and `at` are both given", hint="Give one of them.")
    check_instants(delay, at=at)
    if at is None:
        length = seconds(delay or 0)
        at = await retried(lambda: clock.in_seconds(session, length), deadline=30)
    instant = at
    tx, outcome = await committed_once(session, lambda tx: executions.reschedule(tx, id, instant, by, reason))
    if outcome == "missing":
        await executions.get(session, id)  # raises NotFound unless the execution is archived
        outcome = "ended"
    if outcome in REFUSALS:
        kind, message, hint = REFUSALS[outcome]
        raise kind(message.format(id=id), hint=hint.format(id=id))
    return tx, instant
