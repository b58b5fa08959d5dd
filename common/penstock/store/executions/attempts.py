"""Attempts: claimed by a worker, recorded at their end, and taken from a worker that does not end them.

The fence (I2): every write of a worker names the attempt and the claim. A write about an attempt that another worker
owns by then changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from penstock.language.policies.after_attempt import Ending
from penstock.language.policies.policies import DEFAULT_ATTEMPT_TIMEOUT
from penstock.store.session.database import Session, Transaction
from penstock.store.session.rows import rows_as
from penstock.store.session.staged_messages import StagedMessage, staged_in


@dataclass(slots=True)
class ClaimedAttempt:
    """An attempt that a worker has claimed. `params`, `options`, `carry` (the values of its last deferral) and
    `trace` are JSON. `waited`: seconds since it was ready, by the database's clock. `failures`: failed attempts of
    its execution before. For a task of a workflow: its name, the execution of its `workflow`, and the outermost
    workflow around that (`root`)."""

    execution_id: UUID
    attempt: int
    failures: int
    namespace: str
    definition_id: int
    waited: float
    params: str
    options: str | None
    carry: str | None
    workflow: UUID | None
    root: UUID | None
    task: str | None
    trace: str | None
    labels: Mapping[str, str] = field(default_factory=dict)
    """The labels of the execution, if the claim asked for them (`Claimant.reads_labels`)."""


@dataclass(frozen=True, slots=True)
class Claimant:
    """The worker of a claim and its claim id. The worker has the code of the definitions `known`, and not that of
    `lacking`. `limited` has a definition, its task executor and that executor's room for attempts, if the room is
    smaller than the worker's free slots."""

    worker: UUID
    claim: UUID
    known: Sequence[int]
    lacking: Sequence[int]
    limited: Sequence[tuple[int, str, int]] = ()
    reads_labels: bool = False
    """Return the labels of the claimed executions in the same statement: an error in a second one would lose the claim."""


@dataclass(slots=True)
class ClaimAnswer:
    """The result of a claim. `unknown_definitions`: the worker has to look these up and claim again. `staged`:
    executions that it did not claim, sent to other workers. `parked`: executions that it cannot run were parked;
    after `claim_parked`: some were waiting."""

    attempts: list[ClaimedAttempt] = field(default_factory=list)
    unknown_definitions: list[int] = field(default_factory=list)
    staged: list[StagedMessage] = field(default_factory=list)
    parked: bool = False


LABELS = """
(select jsonb_object_agg(x.id, x.labels)::text from (
    select l.execution_id as id, jsonb_object_agg(l.key, l.value) as labels
    from label l where l.execution_id in (select a.execution_id from unnest(claimed) a) group by 1) x) as labels
"""
CLAIM = """
select claimed, unknown, messages, parked
from claim_executions($1, $2, $3::uuid[], $4, $5, $6::integer[], $7::integer[], $8::executor_room[])
"""
CLAIM_WITH_LABELS = CLAIM.replace("\nfrom ", f", {LABELS}\nfrom ", 1)


async def claim(
    session: Session | Transaction, who: Claimant, queue: str, ids: Sequence[UUID], most: int
) -> ClaimAnswer:
    """Claim at most `most` of `ids` that are scheduled on `queue`. A session commits it by itself, in one round
    trip."""
    statement = CLAIM_WITH_LABELS if who.reads_labels else CLAIM
    [row] = await session.fetch(
        statement, who.worker, who.claim, ids, most, queue, who.known, who.lacking, who.limited
    )
    return claim_answer(*row)


CLAIM_PARKED = """
select claimed, unknown, messages, waits
from claim_parked($1, $2, $3, $4, $5::integer[], $6::integer[], $7::executor_room[])
"""
CLAIM_PARKED_WITH_LABELS = CLAIM_PARKED.replace("\nfrom ", f", {LABELS}\nfrom ", 1)


async def claim_parked(session: Session, who: Claimant, queue: str, most: int) -> ClaimAnswer:
    """Claim at most `most` executions that are parked on `queue`, oldest first. Commits by itself, in one round
    trip."""
    statement = CLAIM_PARKED_WITH_LABELS if who.reads_labels else CLAIM_PARKED
    [row] = await session.fetch(
        statement, who.worker, who.claim, most, queue, who.known, who.lacking, who.limited
    )
    return claim_answer(*row)


CLAIMED_ATTEMPTS = """
array_agg((e.id, e.attempt, e.failures, n.name, e.definition_id,
    extract(epoch from c.claimed_at - e.ready_at)::float8, p.params::text, p.options::text,
    carried_over(e.id), e.parent, root_of(e.parent), e.task, (p.origin -> 'trace')::text)::claimed_attempt) as claimed
"""
CLAIMED = f"""
select {CLAIMED_ATTEMPTS}
from claim c cross join lateral unnest(c.executions) x
join execution e on e.id = x and e.claim = c.worker and e.status in ('running', 'canceling')
join namespace n on n.id = e.namespace_id join payload p on p.execution_id = e.id
where c.id = $1
"""
CLAIMED_WITH_LABELS = f"select claimed, {LABELS} from ({CLAIMED}) c"


async def claimed(session: Session, claim: UUID) -> list[ClaimedAttempt]:
    """Return the attempts of a claim that its worker still owns. Used if the answer of a committed claim was lost."""
    [row] = await session.fetch(CLAIMED_WITH_LABELS, claim)
    return claimed_attempts(row["claimed"] or (), row["labels"])


ASSIGNED = f"""
select extract(epoch from h.at)::float8 as horizon, c.id, a.queue, a.claimed
from (select clock_timestamp() - make_interval(secs => $2) as at) h
left join claim c on c.worker = $1 and c.assigned and c.claimed_at < h.at and c.id <> all ($3::uuid[])
left join lateral (
    select min(n.queue) as queue, {CLAIMED_ATTEMPTS}
    from unnest(c.executions) x
    join execution e on e.id = x and e.claim = c.worker and e.status in ('running', 'canceling')
    join namespace n on n.id = e.namespace_id join payload p on p.execution_id = e.id
) a on true
"""


class AssignedClaims(NamedTuple):
    """The queue and the attempts of the claims that submits have made for a worker, by claim. `horizon` is a time of
    the database in seconds. If a claim was committed before it and is missing, its work was taken away or has ended,
    or the claim has arrived."""

    claims: dict[UUID, tuple[str, list[ClaimedAttempt]]]
    horizon: float


async def assigned(
    session: Session, worker: UUID, older: float, arrived: Sequence[UUID] = ()
) -> AssignedClaims:
    """Return the claims that submits have made for this worker more than `older` seconds ago, with the attempts that
    it still owns. Claims without such an attempt, and those in `arrived`, are left out."""
    rows = await session.fetch(ASSIGNED, worker, older, arrived)
    claims = {row["id"]: (row["queue"], claimed_attempts(row["claimed"])) for row in rows if row["claimed"]}
    return AssignedClaims(claims, rows[0]["horizon"])


CLAIMED_OF = """
select n.queue from claim c join execution e on e.id = c.executions[1] join namespace n on n.id = e.namespace_id where c.id = $1
"""


async def claimed_of(session: Session, claim: UUID) -> str | None:
    """Return the queue of a claim's executions. None: the claim took none, or all of them have ended."""
    return next((row["queue"] for row in await session.fetch(CLAIMED_OF, claim)), None)


def claim_answer(
    claimed: Sequence[Sequence[Any]],
    unknown: list[int],
    messages: Sequence[Any],
    parked: bool,
    labels: str | None = None,
) -> ClaimAnswer:
    """Build the result of a claim from a row of the database."""
    return ClaimAnswer(claimed_attempts(claimed, labels), unknown, staged_in(messages), parked)


def claimed_attempts(rows: Sequence[Sequence[Any]], labels: str | None = None) -> list[ClaimedAttempt]:
    """Build attempts from rows of the type `claimed_attempt`. `labels` are those of the executions, by id, as JSON."""
    by_id = orjson.loads(labels) if labels else {}
    # Actions and task executors get plain UUIDs: JSON encoders reject the driver's subclass.
    attempts = [ClaimedAttempt(*row) for row in rows]
    for attempt in attempts:
        attempt.execution_id = UUID(int=attempt.execution_id.int)
        if attempt.workflow is not None and attempt.root is not None:
            attempt.workflow, attempt.root = UUID(int=attempt.workflow.int), UUID(int=attempt.root.int)
        if by_id:
            attempt.labels = by_id.get(str(attempt.execution_id), {})
    return attempts


@dataclass(slots=True)
class AttemptEnd:
    """The end of an attempt. `followed`: actions may follow the end of the execution. For a task: its name, and the
    execution of its `workflow`."""

    execution_id: UUID
    attempt: int
    ending: Ending
    followed: bool = False
    workflow: UUID | None = None
    task: str | None = None


@dataclass(slots=True)
class Finished:
    """The answer to ends of attempts. `moved` are the executions with a stored end. The worker no longer owned the
    other ones. `staged` are messages to publish. `claimed` has the executions on `queue` that the same statement
    claimed; without a `queue` it claimed none."""

    moved: set[UUID]
    staged: list[StagedMessage]
    queue: str | None = None
    claimed: ClaimAnswer = field(default_factory=ClaimAnswer)


FINISH_PARAMETERS = (
    "$1, $2::uuid[], $3::integer[], $4::text[], $5::text[], $6::text[], $7::float8[], $8::timestamptz[], $9::text[], "
    "$10::uuid[], $11::uuid[]"
)
FINISH = f"select messages, moved from finish_attempts({FINISH_PARAMETERS})"


async def finish(
    tx: Transaction,
    worker: UUID,
    ends: Sequence[AttemptEnd],
    claims: Sequence[UUID] = (),
    *,
    alone: bool = False,
) -> set[UUID]:
    """End attempts that this worker has claimed, and delete `claims`, which have no other open attempt. `ends` must be
    in the order of execution ids. Return the executions with attempts that the worker still owned. With `alone` the
    call commits by itself (`stage_alone`): `tx` must not have run a statement."""
    arguments = finish_arguments(worker, ends, claims)
    [row] = await tx.stage_alone(FINISH, *arguments) if alone else await tx.stage(FINISH, *arguments)
    return set(row["moved"])


def finish_arguments(worker: UUID, ends: Sequence[AttemptEnd], claims: Sequence[UUID]) -> tuple[Any, ...]:
    """Return the arguments of `finish_attempts`."""
    return (
        worker,
        [end.execution_id for end in ends],
        [end.attempt for end in ends],
        [end.ending.status for end in ends],
        [end.ending.result for end in ends],
        [end.ending.error for end in ends],
        [end.ending.delay for end in ends],
        [end.ending.until for end in ends],
        [end.ending.reason for end in ends],
        [end.execution_id for end in ends if end.followed],
        claims,
    )


FINISH_AND_CLAIM = f"""
select moved, messages, queue, claimed, parked
from finish_and_claim({FINISH_PARAMETERS}, $12, $13::text[], $14::integer[], $15::integer[], $16::executor_room[])
"""


async def finish_and_claim(
    session: Session,
    claimant: Claimant,
    queues: Sequence[str],
    ends: Sequence[AttemptEnd],
    claims: Sequence[UUID],
) -> Finished:
    """Record these ends (see `finish`), and claim executions that the ends admit on one of `queues`: at most as many as
    end. Commits by itself, in one round trip."""
    [row] = await session.fetch(
        FINISH_AND_CLAIM,
        *finish_arguments(claimant.worker, ends, claims),
        claimant.claim,
        queues,
        claimant.known,
        claimant.lacking,
        claimant.limited,
    )
    claimed = claim_answer(row["claimed"], [], (), row["parked"])
    return Finished(set(row["moved"]), staged_in(row["messages"]), row["queue"], claimed)


SETTLE = "select settle_costs($1, $2::uuid[], $3::integer[], $4::text[], $5::numeric[])"


async def settle_costs(tx: Transaction, worker: UUID, ends: Sequence[AttemptEnd]) -> None:
    """Replace the reserved costs of attempts by the true ones that they reported. The caller ends the attempts in the same
    transaction, and passes them in the order of execution ids."""
    costs = [(end, unit, amount) for end in ends for unit, amount in (end.ending.costs or {}).items()]
    await tx.fetch(
        SETTLE,
        worker,
        [end.execution_id for end, _, _ in costs],
        [end.attempt for end, _, _ in costs],
        [unit for _, unit, _ in costs],
        [amount for _, _, amount in costs],
    )


ENDED_BY = """
select id from execution where id = any($1::uuid[]) and claim = $2 and finished_at is not null
"""


async def ended_by(session: Session, worker: UUID, ids: Sequence[UUID]) -> set[UUID]:
    """Filter `ids` to the executions that this worker has ended."""
    return {row["id"] for row in await session.fetch(ENDED_BY, ids, worker)}


@dataclass(slots=True)
class OverdueAttempt:
    """An attempt that runs longer than its `timeout` (seconds), on a live worker. `definition` is the body of its
    action, and `options` are those of its task in a workflow; both are JSON."""

    worker: UUID
    execution_id: UUID
    attempt: int
    failures: int
    timeout: float
    definition: str
    options: str | None


OVERDUE = """
select c.worker, e.id as execution_id, e.attempt, e.failures, t.timeout, d.body::text as definition, p.options::text as options
-- The claim of an earlier attempt stays while it names another attempt that runs. The time begins with the latest claim. A clock
-- of the database that leapt ahead looks like a silence of all processes. The time begins again then.
from (select worker, x, greatest(max(claimed_at), (select resumed_at from cluster)) as claimed_at
      from claim cross join lateral unnest(executions) x group by 1, 2) c
join process w on w.id = c.worker and w.state <> 'dead'
join execution e on e.id = c.x and e.claim = c.worker and e.status in ('running', 'canceling')
join definition d on d.id = e.definition_id
left join payload p on p.execution_id = e.id
-- An explicit null means no timeout: such an attempt is never overdue.
cross join lateral (select timeout_of(p.options, d.body, 'attempt', $3) as timeout,
    -- An item waits for its batch before its time begins.
    coalesce((d.body -> 'batch' ->> 'within')::float8, 0) as waits) t
where c.claimed_at < clock_timestamp() - make_interval(secs => $1)
    and c.claimed_at < clock_timestamp() - make_interval(secs => $1 + t.waits + t.timeout)
    -- A heartbeat after the timeout: the worker did not die with this attempt in hand.
    and w.beat_at > c.claimed_at + make_interval(secs => $1 + t.waits + t.timeout)
order by c.worker, e.id limit $2
"""


async def overdue(session: Session, longer: float, limit: int) -> list[OverdueAttempt]:
    """Return at most `limit` attempts that have run `longer` seconds beyond their timeout: that of their task in a
    workflow, otherwise of their action, otherwise DEFAULT_ATTEMPT_TIMEOUT. Only attempts of workers with a later
    heartbeat count: the sweeper decides whether the others were lost with their worker. After a silence of all processes,
    or a leap of the clock, the time counts from then on. The workers know the time of their attempts themselves."""
    return rows_as(OverdueAttempt, await session.fetch(OVERDUE, longer, limit, DEFAULT_ATTEMPT_TIMEOUT))


CANCELING = """
select id, status = 'canceling' as canceling from execution
where id = any($1::uuid[]) and (status = 'canceling' or status = 'running' and ends_as is not null)
"""


async def canceling(session: Session, ids: Sequence[UUID]) -> dict[UUID, bool]:
    """Filter `ids` to the executions with a requested end. The value is true if the status is canceling: that of a durable
    function is so only after a second request."""
    return {row["id"]: row["canceling"] for row in await session.fetch(CANCELING, list(ids))}
