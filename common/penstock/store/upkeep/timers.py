"""The rows that are due at an instant: timers, keys with waiters that may start, lanes with changed limits, unanswered
inquiries."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.store.session.database import Transaction

FIRE = "select messages, canceling, did, next_in from fire_due($1)"


@dataclass(slots=True)
class FireDue:
    """The outcome of a turn. `fired`: something was due. `next_in`: seconds until something else is; None where no timer is
    known."""

    fired: bool
    next_in: float | None


async def fire_due(tx: Transaction, limit: int) -> FireDue:
    """Do what is due, at most `limit` of one kind. The whole transaction, in one round trip."""
    [row] = await tx.stage_alone(FIRE, limit)
    return FireDue(row["did"], row["next_in"])
