"""What is due at an instant: timers, keys whose waiters may start, lines whose limits changed, unanswered inquiries."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.store.database import Transaction

FIRE = "select * from fire_due($1)"
NEXT = "next:"


@dataclass(slots=True)
class FireDue:
    """`fired`: something was due. `next_in`: seconds until something else is; None where nobody knows of anything."""

    fired: bool
    next_in: float | None


async def fire_due(tx: Transaction, limit: int) -> FireDue:
    """Do what is due, at most `limit` of one kind. The whole transaction, in one round trip."""
    *fired, last = await tx.stage_alone(FIRE, limit)
    seconds = last["queue"]
    return FireDue(bool(fired), None if seconds is None else float(seconds.removeprefix(NEXT)))
