"""Executions that were admitted and then lost every worker that could claim them."""

from __future__ import annotations

from penstock.store.database import Transaction

RETURN = "select return_unclaimed(make_interval(secs => $1), $2) as messages"


async def return_unclaimed(tx: Transaction, age: float, limit: int) -> None:
    """Take the slots back from executions that no worker could claim for `age` seconds, and promote others. The whole
    transaction, in one round trip."""
    await tx.stage_alone(RETURN, age, limit)
