"""Executions on a route that no worker claims: what loses its slots for that, and what ends."""

from __future__ import annotations

from uuid import UUID

from penstock.store.session.database import Transaction

RETURN = "select return_unclaimed(make_interval(secs => $1), $2) as messages"


async def return_unclaimed(tx: Transaction, age: float, limit: int) -> None:
    """Take the slots back from executions that no worker could claim for `age` seconds, and promote others. The whole
    transaction, in one round trip."""
    await tx.stage_alone(RETURN, age, limit)


END = "select messages, next from end_unclaimed($1, $2, $3)"


async def end_unclaimed(tx: Transaction, seconds: float, cursor: UUID, limit: int) -> UUID | None:
    """End what no worker claimed for so many seconds: of the next `limit` open executions after `cursor`. Returns the id
    to go on after; None at the end. The whole transaction, in one round trip."""
    [row] = await tx.stage_alone(END, seconds, cursor, limit)
    onward: UUID | None = row["next"]
    return onward
