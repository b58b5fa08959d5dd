"""Executions that were admitted and then lost every worker that could claim them."""

from __future__ import annotations

from penstock.store.database import Session, Transaction

NOTICE = "select notice_workers()"


async def notice_workers(session: Session) -> None:
    """Note of each namespace whether a worker that lives could run it, and since when none could."""
    await session.fetch(NOTICE)


RETURN = "select return_unclaimed(make_interval(secs => $1), $2) as messages"


async def return_unclaimed(tx: Transaction, age: float, limit: int) -> None:
    """Take the slots back from executions that no worker could claim for `age` seconds, and promote others. The whole
    transaction, in one round trip."""
    await tx.stage_alone(RETURN, age, limit)
