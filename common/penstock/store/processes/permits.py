"""Permits: a row for each execution that a worker may be assigned by the submit that creates it.

A permit is valid for a few seconds, and the worker renews its permits. So a worker that does nothing any more is soon assigned
nothing. A gateway places permits for the workers that wait there. Commits are relaxed: a permit does not outlive a crash of the
server.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
    """Replace the permits of a worker on `queue`, so that it has at most `limit`. It had `expected` permits before the
    call. Submits have taken those of them that are gone, and these count as permits, too. `behind`: place none while
    messages of the queue wait in the outbox. Return the number of deleted permits, and the number of inserted ones."""
    [row] = await session.fetch(RENEW, worker, queue, channel, list(definitions), expected, limit, behind)
    return row["withdrawn"], row["placed"]


WITHDRAW = """
delete from permit where ctid = any (array(
    select ctid from permit where worker = $1 and queue = $2 order by at desc limit $3 for update skip locked))
returning 1
"""


async def withdraw(session: Session, worker: UUID, queue: str, limit: int) -> int:
    """Delete at most `limit` permits of a worker on `queue` that no submit has locked. Return the number of deleted
    permits."""
    return len(await session.fetch(WITHDRAW, worker, queue, limit))


WITHDRAW_ALL = "delete from permit where worker = $1"


async def withdraw_all(session: Session, worker: UUID) -> None:
    """Delete all permits of a worker. This waits for submits that have taken a permit, so that their claims can be seen
    afterwards."""
    await session.fetch(WITHDRAW_ALL, worker)


@dataclass(frozen=True, slots=True)
class TakePermit:
    """A permit of a take that waits at a gateway: `definitions` may be assigned to its worker on `queue`, under the
    claim id of the take. The history names `actor`. A permit that is not new is only renewed."""

    worker: UUID
    queue: str
    claim: UUID
    actor: str
    definitions: Sequence[int]
    is_new: bool


PERMIT_TAKES = """
select permit_takes($1, $2, $3, $4::text[], $5::uuid[], $6::uuid[], $7::text[], $8::text[], $9::boolean[], $10) as out
"""


async def place_for_takes(
    session: Session, holder: UUID, lock: int, channel: str, permits: Sequence[TakePermit], *, behind: bool
) -> list[bool]:
    """Place or renew the permits of takes that wait at the gateway `holder`. The session of the gateway holds `lock`,
    and listens on `channel`. `behind`: place no permits while messages of their queue wait in the outbox. Return for
    each permit whether it exists now. A permit that was only to be renewed and does not exist was taken by a submit."""
    [row] = await session.fetch(
        PERMIT_TAKES,
        holder,
        lock,
        channel,
        [permit.queue for permit in permits],
        [permit.worker for permit in permits],
        [permit.claim for permit in permits],
        [permit.actor for permit in permits],
        [f"{{{','.join(map(str, permit.definitions))}}}" for permit in permits],
        [permit.is_new for permit in permits],
        behind,
    )
    return list(row["out"])


WITHDRAW_TAKE = "select withdrawn, locked from withdraw_take($1, $2)"


async def withdraw_take(session: Session, worker: UUID, claim: UUID) -> tuple[set[str], set[str]]:
    """Delete the permits of a take. Return the queues of the deleted permits, and the queues of permits that a submit
    has locked. Submits have taken all other permits."""
    [row] = await session.fetch(WITHDRAW_TAKE, worker, claim)
    return set(row["withdrawn"]), set(row["locked"]) - set(row["withdrawn"])


MADE = "select id from claim where id = any($1::uuid[])"


async def claims_made(session: Session, claims: Sequence[UUID]) -> set[UUID]:
    """Filter `claims` to the claim ids under which executions are claimed."""
    return {row["id"] for row in await session.fetch(MADE, list(claims))}
