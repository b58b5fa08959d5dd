"""Permits: a row for each execution that a worker may be assigned by the submit that creates it.

A permit is valid for a few seconds, and the worker renews its permits. So a worker that does nothing any more is soon assigned
nothing. Commits are relaxed: a permit does not outlive a crash of the server.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from penstock.store.session.database import Session

RENEW = "select withdrawn, placed from renew_permits($1, $2, $3, $4::integer[], $5, $6, $7)"


async def renew(
    session: Session,
    worker: UUID,
    queue: str,
    channel: str,
    definitions: Sequence[int],
    *,
    expected: int,
    limit: int,
    behind: bool,
) -> tuple[int, int]:
    """Replace the permits of a worker on `queue`, so that at most `limit` are out. `expected` of them were out. Of these, the
    ones that are gone are in the hands of submits, and count. `behind`: place none while messages of the queue wait in the
    outbox. Return how many old ones were deleted, and how many new ones inserted."""
    [row] = await session.fetch(RENEW, worker, queue, channel, list(definitions), expected, limit, behind)
    return row["withdrawn"], row["placed"]


WITHDRAW = """
delete from permit where ctid = any (array(
    select ctid from permit where worker = $1 and queue = $2 order by at desc limit $3 for update skip locked))
returning 1
"""


async def withdraw(session: Session, worker: UUID, queue: str, limit: int) -> int:
    """Delete at most `limit` permits of a worker on `queue` that no submit has locked. Return how many were deleted."""
    return len(await session.fetch(WITHDRAW, worker, queue, limit))


WITHDRAW_ALL = "delete from permit where worker = $1"


async def withdraw_all(session: Session, worker: UUID) -> None:
    """Delete all permits of a worker. This waits for submits that have taken one: the claims of all are seen afterwards."""
    await session.fetch(WITHDRAW_ALL, worker)
