"""Executions on a route that no worker claims: they give back their slots, and may end."""

from __future__ import annotations

from uuid import UUID

from penstock.store.session.database import Transaction

RETURN = "select return_unclaimed(make_interval(secs => $1), $2) as messages"


async def return_unclaimed(tx: Transaction, age: float, limit: int) -> None:
    """Take the slots back from at most `limit` executions that no worker could claim for `age` seconds, and promote
    waiting executions into these slots. Commits by itself (`stage_alone`): `tx` must not have run a statement."""
    await tx.stage_alone(RETURN, age, limit)


END = "select messages, next from end_unclaimed($1, $2, $3)"


async def end_unclaimed(tx: Transaction, seconds: float, cursor: UUID, limit: int) -> UUID | None:
    """End executions that no worker claimed for `seconds`, among the next `limit` open executions after `cursor`.
    Return the id to continue after; None at the end. Commits by itself (`stage_alone`): `tx` must not have run a
    statement."""
    [row] = await tx.stage_alone(END, seconds, cursor, limit)
    onward: UUID | None = row["next"]
    return onward


STUCK = "select messages, next from raise_stuck($1, $2, $3, $4)"


async def raise_stuck(tx: Transaction, seconds: float, stale: float, cursor: UUID, limit: int) -> UUID | None:
    """Raise system events for executions that no live worker could run for `seconds`, among the next `limit` open
    executions after `cursor`. A worker without a heartbeat for `stale` seconds does not count. Return the id to
    continue after; None at the end. Commits by itself (`stage_alone`): `tx` must not have run a statement."""
    [row] = await tx.stage_alone(STUCK, seconds, stale, cursor, limit)
    onward: UUID | None = row["next"]
    return onward
