"""The attempts of workers that call a gateway. The fence is that of other workers: the worker and the number of the attempt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from penstock.store.executions import attempts, plain_executions
from penstock.store.executions.attempts import (
    AttemptEnd,
    ClaimAnswer,
    ClaimedAttempt,
    claim_answer,
    claimed_attempts,
    finish_arguments,
)
from penstock.store.executions.log_lines import NewLine
from penstock.store.session.database import Session, Transaction


@dataclass(frozen=True, slots=True)
class RemoteClaimant:
    """The worker of a claim, and its claim id. The history names `actor`. The worker has the code of the definitions
    `runnable`, and not that of `lacking`. The worker gets executions of `tenants`; None means all."""

    actor: str
    worker: UUID
    claim: UUID
    runnable: Sequence[int]
    lacking: Sequence[int]
    tenants: Sequence[str] | None


CLAIM = """
select claimed, unknown, messages, parked
from claim_remotely($1, $2, $3, $4::uuid[], $5, $6, $7::integer[], $8::integer[], $9::text[])
"""


async def claim(
    session: Session, claimant: RemoteClaimant, queue: str, ids: Sequence[UUID], limit: int
) -> ClaimAnswer:
    """Claim at most `limit` of `ids` that are scheduled on `queue`. Commits by itself."""
    [row] = await session.fetch(
        CLAIM,
        claimant.actor,
        claimant.worker,
        claimant.claim,
        ids,
        limit,
        queue,
        claimant.runnable,
        claimant.lacking,
        claimant.tenants,
    )
    return claim_answer(*row)


CLAIM_PARKED = """
select claimed, unknown, messages, waits
from claim_parked_remotely($1, $2, $3, $4, $5, $6::integer[], $7::integer[], $8::text[])
"""


async def claim_parked(session: Session, claimant: RemoteClaimant, queue: str, limit: int) -> ClaimAnswer:
    """Claim at most `limit` executions that are parked on `queue`, oldest first. Commits by itself."""
    [row] = await session.fetch(
        CLAIM_PARKED,
        claimant.actor,
        claimant.worker,
        claimant.claim,
        limit,
        queue,
        claimant.runnable,
        claimant.lacking,
        claimant.tenants,
    )
    return claim_answer(*row)


PARKED_QUEUES = "select q from unnest($1::text[]) q where exists (select from parked k where k.queue = q)"


async def parked_queues(session: Session, queues: Sequence[str]) -> list[str]:
    """Filter `queues` to those with parked executions."""
    return [row["q"] for row in await session.fetch(PARKED_QUEUES, list(queues))]


OWNED = """
select array_agg((e.id, e.attempt, e.failures, n.name, e.definition_id, 0::float8, p.params::text, p.options::text,
    carried_over(e.id), e.parent, case when e.parent is not null then root_of(e.parent) end, e.task,
    (p.origin -> 'trace')::text)::claimed_attempt) as claimed
from unnest($2::uuid[]) x join execution e on e.id = x and e.claim = $1 and e.status in ('running', 'canceling')
join namespace n on n.id = e.namespace_id join payload p on p.execution_id = e.id
"""


async def owned(session: Session, worker: UUID, ids: Sequence[UUID]) -> list[ClaimedAttempt]:
    """Return the attempts of executions among `ids` that this worker owns."""
    return claimed_attempts((await session.fetch(OWNED, worker, list(ids)))[0]["claimed"] or ())


LOOK_UP = "update claim set calls = calls + 1 where id = $1 returning calls"


async def look_up(session: Session, claim: UUID) -> tuple[int, list[ClaimedAttempt]]:
    """Return the attempts of a claim that its worker still owns, and the number of calls that have looked them up. Earlier
    calls must not return them to their route any more (`is_last_call`)."""
    rows = await session.fetch(LOOK_UP, claim)
    return (rows[0]["calls"], await attempts.claimed(session, claim)) if rows else (0, [])


LOCK = "select from execution where id = any($1::uuid[]) order by id for no key update"
LOCK_CLAIM = "select calls from claim where id = $1 for update"


async def is_last_call(tx: Transaction, claim: UUID, calls: int, ids: Sequence[UUID]) -> bool:
    """Return whether call number `calls` is still the last one that has looked this claim up. Lock the rows of `ids`
    and then that of the claim, in the order in which an end of attempts locks them."""
    await tx.fetch(LOCK, list(ids))
    rows = await tx.fetch(LOCK_CLAIM, claim)
    return bool(rows) and rows[0]["calls"] == calls


FINISH = """
select messages, moved, repeated
from finish_remotely($1, $2, $3, $4::uuid[], $5::integer[], $6::text[], $7::text[], $8::text[], $9::float8[], $10::timestamptz[],
    $11::text[], $12::uuid[])
"""


async def finish(tx: Transaction, actor: str, worker: UUID, ends: Sequence[AttemptEnd]) -> set[UUID]:
    """End attempts of a worker. `ends` must be in the order of execution ids. Return the executions with attempts that
    the worker owned, or had ended before. Commits by itself (`stage_alone`): `tx` must not have run a statement."""
    is_plain = plain_executions.all_completed(ends)
    *arguments, _ = finish_arguments(worker, ends, ())
    [row] = await tx.stage_alone(FINISH, actor, is_plain, *arguments)
    return {*row["moved"], *row["repeated"]}


STORE_LINES = """
select lost from store_remote_lines($1, $2, $3::uuid[], $4::integer[], $5::bigint[], $6::text[], $7::text[])
"""


async def store_lines(session: Session, lines: Sequence[NewLine], worker: UUID, name: str) -> list[UUID]:
    """Store lines of attempts that this worker owns. A line that is stored already is left alone. Return the executions
    with lines of attempts that it does not own, which are not stored."""
    *columns, _ = (list(column) for column in zip(*lines, strict=True))
    [row] = await session.fetch(STORE_LINES, worker, name, *columns)
    return list(row["lost"])
