"""The rows that are due at an instant: timers, wake rows of keys, lanes with changed limits, unanswered inquiries."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.store.session.database import Transaction

FIRE = "select messages, canceling, did, next_in from fire_due($1)"


@dataclass(slots=True)
class FireDue:
    """The outcome of a call. `fired`: something was due. `next_in`: seconds until more is due; None if nothing is
    known."""

    fired: bool
    next_in: float | None


async def fire_due(tx: Transaction, limit: int) -> FireDue:
    """Handle the due work of one kind (timers, wake rows, inquiries ...), at most `limit` rows. Commits by itself
    (`stage_alone`): `tx` must not have run a statement."""
    [row] = await tx.stage_alone(FIRE, limit)
    return FireDue(row["did"], row["next_in"])
