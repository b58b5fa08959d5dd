"""Transactions that are retried, and take effect once even if the answer to a commit was lost.

A connection that breaks after COMMIT was sent leaves the outcome unknown. The next try asks PostgreSQL for the status of that
transaction first, and repeats the work only if it was not committed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import asyncpg

from penstock.errors import ConnectionFailed
from penstock.store.session.database import Session, Transaction, retried

T = TypeVar("T")

_IDENTITY = """
select pg_current_xact_id_if_assigned()::text as id, left(pg_walfile_name(pg_current_wal_lsn()), 8) as timeline
"""
"""The id is null if the transaction has written nothing. A server that takes over after a failover has another timeline, and may
use the id again."""
_STATUS = """
select case when left(pg_walfile_name(pg_current_wal_lsn()), 8) = $2 then pg_xact_status($1::text::xid8) end as status
"""


@dataclass(frozen=True, slots=True)
class _Unconfirmed(Generic[T]):
    """A transaction that has done its work, with an unknown outcome of its COMMIT."""

    tx: Transaction
    answer: T
    id: str
    timeline: str


async def committed_once(
    session: Session, work: Callable[[Transaction], Awaitable[T]], *, deadline: float = 30
) -> tuple[Transaction, T]:
    """Run `work` in a transaction and commit it, with retries of transient errors for `deadline` seconds. Return the
    committed transaction and what `work` returned in it.

    A retry after a lost answer to COMMIT repeats nothing that was committed. Only after a failover that is unknown,
    and `work` runs again. `work` must change nothing but the database.
    """
    unconfirmed: _Unconfirmed[T] | None = None

    async def attempt() -> tuple[Transaction, T]:
        nonlocal unconfirmed
        if unconfirmed is not None and await _is_committed(session, unconfirmed):
            unconfirmed.tx.confirm()
            return unconfirmed.tx, unconfirmed.answer
        unconfirmed = None
        async with session.transaction() as tx:
            answer = await work(tx)
            if not tx.empty:
                [row] = await tx.fetch(_IDENTITY)
                if row["id"] is not None:
                    unconfirmed = _Unconfirmed(tx, answer, row["id"], row["timeline"])
        return tx, answer

    return await retried(attempt, deadline=deadline)


async def _is_committed(session: Session, unconfirmed: _Unconfirmed[T]) -> bool:
    """Return whether a transaction was committed. Raises ConnectionFailed, which is retried, while it is in progress."""
    try:
        [row] = await session.fetch(_STATUS, unconfirmed.id, unconfirmed.timeline)
    except asyncpg.InvalidParameterValueError:  # an id of the future: this server never saw the transaction
        return False
    if row["status"] == "in progress":
        raise ConnectionFailed("the server has not ended a transaction whose connection was lost")
    return bool(row["status"] == "committed")
