"""The recorded steps of durable functions, and the wake of suspended functions. The database checks the fence (I2):
see `record_steps`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from penstock.store.session.database import Row, Session, Transaction
from penstock.store.session.rows import first_as, rows_as

PAGE = 5000
"""Steps that one query reads."""


@dataclass(slots=True)
class StepWrite:
    """A step that an attempt records. `result` and `error` are JSON; `took` is in seconds. A write with the status
    `told` records only when the result of its row was delivered to the function. `unless` is a step, by name and
    ordinal, that must not exist."""

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
    """A write that changed nothing: `nth` is its number, from 1. Either the attempt is lost (`is_lost`); or the step
    is recorded already, with these values; or the step of `unless` exists, with these values."""

    nth: int
    name: str
    ordinal: int
    place: int
    is_lost: bool
    kind: str | None
    status: str | None
    tries: int | None
    result: str | None
    error: str | None
    at: datetime | None


RECORD = """
select nth, name, ordinal, place, lost as is_lost, kind, status, tries, result, error, at
from record_steps($1, $2::uuid[], $3::integer[], $4::text[], $5::integer[], $6::integer[], $7::text[], $8::text[],
    $9::integer[], $10::real[], $11::text[], $12::text[], $13::integer[], $14::integer[], $15::text[], $16::integer[])
"""


async def record(db: Session | Transaction, worker: UUID, writes: Sequence[StepWrite]) -> list[Unwritten]:
    """Record steps of attempts that this worker owns. Return the writes that changed nothing. No step may occur twice
    in `writes`. A session commits it by itself, in one round trip."""
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
    """The state of a run when its attempt begins: the database's clock, the requested end (`ends_as`), and the
    `failure` of the last attempt that failed (JSON: steps, told, attempt)."""

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
    """Return the state that an attempt of each of these runs needs first."""
    return rows_as(RunHead, await session.fetch(HEADS, list(ids)))


@dataclass(slots=True)
class StoredStep:
    """A recorded step; `result` and `error` are JSON."""

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
    """Return all recorded steps of these runs. The steps are read in pages."""
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
    """Return the signals that were sent among `keys`: (run, name, ordinal)."""
    return rows_as(StoredStep, await session.fetch(SENT, *(list(part) for part in zip(*keys, strict=True))))


@dataclass(slots=True)
class StoredChild:
    """The child execution of a step. `result` and `error` are JSON, once it has ended. `target` is the ref of what the
    child runs, or of the trigger of its wait."""

    parent: UUID
    name: str
    ordinal: int
    id: UUID
    status: str
    ended: bool
    result: str | None
    error: str | None
    finished_at: datetime | None
    target: str | None


CHILD = """
select e.parent, e.task as name, e.item as ordinal, e.id, e.status, e.finished_at is not null as ended,
    r.result::text as result, r.error::text as error, e.finished_at,
    case when d.ref = 'wait_for_event' then (select p.params ->> 'trigger' from payload p where p.execution_id = e.id)
        else d.ref end as target
from execution e join definition d on d.id = e.definition_id left join result r on r.execution_id = e.id
"""
CHILDREN = f"{CHILD} where e.parent = any($1::uuid[])"


@dataclass(frozen=True, slots=True)
class ChildWait:
    """An open child of a run, and its own wait: for an answer (`prompt`, `assignee`) or an event (`trigger`, and the stored
    `params` of the wait, JSON), until `until`. `since` is the beginning of the wait, or of the child."""

    name: str
    ordinal: int
    tenant: str
    since: datetime
    until: datetime | None
    prompt: str | None
    assignee: str | None
    trigger: str | None
    params: str | None


CHILD_WAITS = """
select e.task as name, e.item as ordinal, split_part(n.name, '::', 1) as tenant,
    coalesce(i.created_at, w.since, e.created_at) as since,
    coalesce(i.due_at, (select min(t.due_at) from timer t where t.execution_id = e.id and t.kind = 'total')) as until,
    i.prompt, i.assignee, w.trigger,
    case when w.trigger is not null then (select p.params::text from payload p where p.execution_id = e.id) end as params
from execution e join namespace n on n.id = e.namespace_id
left join inquiry i on i.execution_id = e.id and i.status = 'created'
left join event_wait w on w.execution_id = e.id
where e.parent = $1 and e.finished_at is null and e.task is not null
"""


async def child_waits(session: Session, parent: UUID) -> list[ChildWait]:
    """Return the waits of a run's open children."""
    return rows_as(ChildWait, await session.fetch(CHILD_WAITS, parent))


@dataclass(frozen=True, slots=True)
class OpenRun:
    """An open run of a durable function, on the database's clock. `since` is the instant at which it was suspended; None: a
    worker runs it. `signals` are those that the suspended function waits for, each a recorded name and an ordinal (JSON)."""

    action: str
    now: datetime
    since: datetime | None
    signals: str | None


OPEN_RUN = """
select d.ref as action, clock_timestamp() as now, s.since, s.signals::text as signals
from execution e join definition d on d.id = e.definition_id left join suspended s on s.execution_id = e.id
where e.id = $1 and e.finished_at is null
"""


async def open_run(session: Session, id: UUID) -> OpenRun | None:
    """Return an open run; None if it has ended."""
    return first_as(OpenRun, await session.fetch(OPEN_RUN, id))


ENDED = f"{CHILD} where e.id = any($1::uuid[]) and e.finished_at is not null"


async def children(db: Session | Transaction, parents: Sequence[UUID]) -> list[StoredChild]:
    """Return the child executions of these runs' steps."""
    return rows_as(StoredChild, await db.fetch(CHILDREN, list(parents)))


CHILDREN_OF_ANY_AGE = f"""
{CHILD} where e.parent = $1
union all
select a.parent, a.task, a.item, a.id, a.status, true, a.result::text, a.error::text, a.finished_at,
    case when a.action = 'wait_for_event' then a.params ->> 'trigger' else a.action end
from archive a where a.root = (select o.root from archive o where o.id = $1) and a.parent = $1
"""


async def children_of_any_age(session: Session, parent: UUID) -> list[StoredChild]:
    """Return the child executions of a run's steps, open or archived. A run is archived together with its children."""
    return rows_as(StoredChild, await session.fetch(CHILDREN_OF_ANY_AGE, parent))


async def ended_children(session: Session, ids: Sequence[UUID]) -> list[StoredChild]:
    """Return the child executions among `ids` that have ended."""
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
) as depth, (select e.status from execution e where e.id = x.id) = 'canceling' as ends_at_once
from unnest($2::uuid[], $3::integer[]) as x (id, attempt) where owns_attempt($1, x.id, x.attempt)
"""


@dataclass(frozen=True, slots=True)
class OwnedFunction:
    """An execution that a worker owns, with the `depth` of nested executions around it. `ends_at_once`: its end was requested
    once more while it cleaned up."""

    id: UUID
    depth: int
    ends_at_once: bool


async def lock_own(
    tx: Transaction, worker: UUID, ids: Sequence[UUID], attempts: Sequence[int], depth: int
) -> dict[UUID, OwnedFunction]:
    """Lock the executions of this worker's attempts until the transaction ends, so that no attempt is taken away, and no end
    is requested. Return the attempts that the worker owns. Their depths are counted up to `depth`."""
    await tx.fetch(OWN, worker, list(ids))
    rows: list[Row] = await tx.fetch(OWNED, worker, list(ids), list(attempts), depth)
    return {row.id: row for row in rows_as(OwnedFunction, rows)}


WAKE_PARENTS = "select wake_parents($1::uuid[], $2::uuid[], $3) as messages"


async def wake_parents(
    tx: Transaction, parents: Sequence[UUID], children: Sequence[UUID], reason: str
) -> None:
    """Wake the suspended functions among `parents` that wait for one of these ended `children`."""
    await tx.stage(WAKE_PARENTS, sorted(parents), list(children), reason)


@dataclass(frozen=True, slots=True)
class NewSignal:
    """A checked signal to the durable function `execution_id`. `value` is JSON."""

    execution_id: UUID
    name: str
    value: str


SIGNAL = "select messages, known from signal_function($1, $2, $3)"


async def signal(tx: Transaction, id: UUID, name: str, value: str) -> bool:
    """Send a signal with a value (JSON) to a durable function. `name` is the signal's step name. Return False if the
    execution has ended, or is not a durable function."""
    [row] = await tx.stage(SIGNAL, id, name, value)
    return bool(row["known"])


AWAITED_SIGNALS = """
select array(select substr(g ->> 0, 8) from jsonb_array_elements(s.signals) g) as names from suspended s where s.execution_id = $1
"""


async def awaited_signals(db: Session | Transaction, id: UUID) -> list[str] | None:
    """Return the names of the signals that a suspended function waits for; None if it is not suspended."""
    rows: list[Row] = await db.fetch(AWAITED_SIGNALS, id)
    return list(rows[0]["names"]) if rows else None


@dataclass(slots=True)
class GivenStep:
    """The outcome of setting a step's result. `is_running`: the function has not ended. `is_set`: the step was not
    over. `open_child`: the step's execution, which is not needed any more."""

    is_running: bool
    is_set: bool
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
    """Set the result (JSON) of a step from outside. `kind` is skip or set_result; it is recorded with the author `by`
    and the reason."""
    [row] = await tx.stage(GIVE, id, name, ordinal, result, kind, by, reason)
    return GivenStep(row["known"], row["given"], row["open_child"])


# A step is asked for once it is recorded, has a child, or is a signal that the suspended function waits for.
ASKED = """
select k.name, max(k.ordinal)::integer as ordinal
from (select name, ordinal from step where execution_id = $1
      union all select task, coalesce(item, 1) from execution where parent = $1 and task is not null
      union all select g ->> 0, (g ->> 1)::integer
      from suspended s cross join jsonb_array_elements(s.signals) g where s.execution_id = $1) k
group by k.name
"""


async def asked(tx: Transaction, id: UUID) -> dict[str, int]:
    """Return the names of the steps that a run has asked for, as far as is recorded, each with its highest ordinal."""
    return {row["name"]: row["ordinal"] for row in await tx.fetch(ASKED, id)}


RECORDED = f"""
select {COLUMNS} from recorded_steps($1) order by at, place, name, ordinal
"""


async def recorded(db: Session | Transaction, id: UUID) -> list[StoredStep]:
    """Return the recorded steps of a run, archived or not, in the order of recording. A step with a child execution
    counts as completed once the child has completed."""
    return rows_as(StoredStep, await db.fetch(RECORDED, id))


KEEP = "select keep_steps($1, $2, $3, $4)"


async def keep(tx: Transaction, new: UUID, old: UUID, name: str | None, ordinal: int) -> None:
    """Copy the recorded steps of the run `old` to its re-run `new`; if a step is named, only the steps before it."""
    await tx.fetch(KEEP, new, old, name, ordinal)
