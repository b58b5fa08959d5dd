"""The records of durable functions, and the wake of suspended ones. The fence (I2) is the database's: see `record_steps`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from penstock.store.session.database import Row, Session, Transaction
from penstock.store.session.rows import rows_as

PAGE = 5000
"""Steps that are read at a time."""


@dataclass(slots=True)
class StepWrite:
    """A step as it is recorded by an attempt. `result` and `error` are JSON; `took` is in seconds. Of status `told` it says only
    when the result of its row was told. `unless`: the step that must not be there, by name and ordinal."""

    execution_id: UUID
    attempt: int
    name: str
    ordinal: int
    place: int
    kind: str
    status: str
    tries: int
    took: float
    result: str | None
    error: str | None
    asked_after: int = 0
    told: int | None = None
    unless: tuple[str, int] | None = None


@dataclass(slots=True)
class Unwritten:
    """A step that was not recorded: `nth` is that of the write, from 1. The attempt is `lost`; or the step is recorded already,
    like this; or the step that must not be there is, like this."""

    nth: int
    name: str
    ordinal: int
    place: int
    lost: bool
    kind: str | None
    status: str | None
    tries: int | None
    result: str | None
    error: str | None
    at: datetime | None


RECORD = """
select nth, name, ordinal, place, lost, kind, status, tries, result, error, at
from record_steps($1, $2::uuid[], $3::integer[], $4::text[], $5::integer[], $6::integer[], $7::text[], $8::text[],
    $9::integer[], $10::real[], $11::text[], $12::text[], $13::integer[], $14::integer[], $15::text[], $16::integer[])
"""


async def record(db: Session | Transaction, worker: UUID, writes: Sequence[StepWrite]) -> list[Unwritten]:
    """Record these, each step at most once among them, as far as their attempts are this worker's. Of a session: the whole
    transaction, in one round trip."""
    rows = await db.fetch(
        RECORD,
        worker,
        [w.execution_id for w in writes],
        [w.attempt for w in writes],
        [w.name for w in writes],
        [w.ordinal for w in writes],
        [w.place for w in writes],
        [w.kind for w in writes],
        [w.status for w in writes],
        [w.tries for w in writes],
        [w.took for w in writes],
        [w.result for w in writes],
        [w.error for w in writes],
        [w.asked_after for w in writes],
        [w.told for w in writes],
        [w.unless and w.unless[0] for w in writes],
        [w.unless and w.unless[1] for w in writes],
    )
    return rows_as(Unwritten, rows)


@dataclass(slots=True)
class RunHead:
    """The state of a run at the begin of its attempt: the database's clock, and what it was asked to end as. `failure` (JSON:
    steps, told, attempt) is that of the last attempt that failed."""

    id: UUID
    now: datetime
    ends_as: str | None
    failure: str | None


HEADS = """
select e.id, clock_timestamp() as now, e.ends_as, f.failure
from execution e
left join lateral (
    select json_build_object('steps', t.error -> 'steps', 'told', t.error -> 'told', 'attempt', t.attempt)::text as failure
    from attempt t where t.execution_id = e.id and t.outcome = 'failed' and e.attempt > 1
    order by t.attempt desc limit 1
) f on true
where e.id = any($1::uuid[])
"""


async def heads(session: Session, ids: Sequence[UUID]) -> list[RunHead]:
    """Return the facts that an attempt of each of these has to know first."""
    return rows_as(RunHead, await session.fetch(HEADS, list(ids)))


@dataclass(slots=True)
class StoredStep:
    """A step as it is recorded; `result` and `error` are JSON."""

    execution_id: UUID
    name: str
    ordinal: int
    place: int
    kind: str
    status: str
    tries: int
    attempt: int
    took: float
    at: datetime
    result: str | None
    error: str | None
    asked_after: int
    told: int | None


COLUMNS = """execution_id, name, ordinal, place, kind, status, tries, attempt, took, at, result::text as result,
    error::text as error, asked_after, told"""
READ = f"""
select {COLUMNS} from step
where execution_id = any($1::uuid[]) and (execution_id, name, ordinal) > ($2::uuid, $3::text, $4::integer)
order by execution_id, name, ordinal limit {PAGE}
"""


async def read(session: Session, ids: Sequence[UUID]) -> list[StoredStep]:
    """All that is recorded of these runs, a page at a time."""
    recorded: list[StoredStep] = []
    cursor: tuple[UUID, str, int] = (UUID(int=0), "", 0)
    while True:
        rows = await session.fetch(READ, list(ids), *cursor)
        recorded += rows_as(StoredStep, rows)
        if len(rows) < PAGE:
            return recorded
        cursor = (recorded[-1].execution_id, recorded[-1].name, recorded[-1].ordinal)


SENT = f"""
select {COLUMNS} from unnest($1::uuid[], $2::text[], $3::integer[]) as k (run, signal, nth)
join step on execution_id = k.run and name = k.signal and ordinal = k.nth
"""


async def sent(session: Session, keys: Sequence[tuple[UUID, str, int]]) -> list[StoredStep]:
    """Return those of these signals that were sent, by run, name and ordinal."""
    return rows_as(StoredStep, await session.fetch(SENT, *(list(part) for part in zip(*keys, strict=True))))


@dataclass(slots=True)
class StoredChild:
    """The execution of a step. `result` and `error` are JSON, once it has ended."""

    parent: UUID
    name: str
    ordinal: int
    id: UUID
    status: str
    ended: bool
    result: str | None
    error: str | None
    finished_at: datetime | None


CHILD = """
select e.parent, e.task as name, e.item as ordinal, e.id, e.status, e.finished_at is not null as ended,
    r.result::text as result, r.error::text as error, e.finished_at
from execution e left join result r on r.execution_id = e.id
"""
CHILDREN = f"{CHILD} where e.parent = any($1::uuid[])"
ENDED = f"{CHILD} where e.id = any($1::uuid[]) and e.finished_at is not null"


async def children(db: Session | Transaction, parents: Sequence[UUID]) -> list[StoredChild]:
    """The executions of these runs' steps."""
    return rows_as(StoredChild, await db.fetch(CHILDREN, list(parents)))


async def ended_children(session: Session, ids: Sequence[UUID]) -> list[StoredChild]:
    """Return those of these executions that have ended."""
    return rows_as(StoredChild, await session.fetch(ENDED, list(ids)))


OWN = "select lock_attempts($1, $2::uuid[])"
OWNED = """
select x.id, (
    with recursive above as (
        select e.parent, 1 as depth from execution e where e.id = x.id
        union all
        select e.parent, a.depth + 1 from above a join execution e on e.id = a.parent where a.depth < $4
    )
    select max(depth) from above
) as depth
from unnest($2::uuid[], $3::integer[]) as x (id, attempt) where owns_attempt($1, x.id, x.attempt)
"""


async def lock_own(
    tx: Transaction, worker: UUID, ids: Sequence[UUID], attempts: Sequence[int], depth: int
) -> dict[UUID, int]:
    """Return those of these attempts that are this worker's, with how many executions are inside one another there, as far as
    `depth`. They stay the worker's until the transaction ends."""
    await tx.fetch(OWN, worker, list(ids))
    rows: list[Row] = await tx.fetch(OWNED, worker, list(ids), list(attempts), depth)
    return {row["id"]: row["depth"] for row in rows}


WAKE = "select wake_functions($1::uuid[], $2) as messages"


async def wake(tx: Transaction, ids: Sequence[UUID], reason: str) -> None:
    """Have those of these that are suspended go on: something that they wait for is there."""
    await tx.stage(WAKE, sorted(ids), reason)


SIGNAL = "select messages, known from signal_function($1, $2, $3)"


async def signal(tx: Transaction, id: UUID, name: str, value: str) -> bool:
    """Tell a durable function this (JSON) under a signal's step name. False if it has ended, or is none."""
    [row] = await tx.stage(SIGNAL, id, name, value)
    return bool(row["known"])


@dataclass(slots=True)
class GivenStep:
    """`known`: the function has not ended. `given`: the step was not over. `open_child`: its execution, which is not
    needed now."""

    known: bool
    given: bool
    open_child: UUID | None


GIVE = "select messages, known, given, open_child from give_step($1, $2, $3, $4, $5, $6, $7)"


async def give(
    tx: Transaction,
    id: UUID,
    name: str,
    ordinal: int,
    result: str,
    *,
    kind: str,
    by: str,
    reason: str | None,
) -> GivenStep:
    """Give a step its result (JSON). `kind`: skip or set_result, as it is kept with its author and reason."""
    [row] = await tx.stage(GIVE, id, name, ordinal, result, kind, by, reason)
    return GivenStep(row["known"], row["given"], row["open_child"])


RECORDED = f"""
select {COLUMNS} from recorded_steps($1) order by at, place, name, ordinal
"""


async def recorded(db: Session | Transaction, id: UUID) -> list[StoredStep]:
    """Return the records of a run, archived or not, in the order of their recording. A step that is an execution of its own,
    and has completed, counts as recorded, too."""
    return rows_as(StoredStep, await db.fetch(RECORDED, id))


KEEP = "select keep_steps($1, $2, $3, $4)"


async def keep(tx: Transaction, new: UUID, old: UUID, name: str | None, ordinal: int) -> None:
    """Let a re-run keep what the run before has recorded; of that, where a step is named, what came before it."""
    await tx.fetch(KEEP, new, old, name, ordinal)
