"""The statements of schedules and fires: lock due schedules, record fires, settle fires."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from penstock.store.session.database import Session, Transaction
from penstock.store.session.rows import columns_as, rows_as


class FiredUpTo(NamedTuple):
    """The instant up to which a schedule was fired, and when it is due next. With `since` None, the schedule's times
    stay unchanged."""

    ref: str
    since: datetime | None
    next_due: datetime | None
    problem: str | None


class NewFire(NamedTuple):
    """A fire to record, with the execution that it starts. `params`, `options` and `origin` are JSON."""

    schedule: str
    due_at: datetime
    kind: str
    status: str
    overlap: str
    definition_id: int
    id: UUID | None
    namespace_id: int | None
    action_id: int | None
    not_before: datetime | None
    params: str | None
    options: str | None
    origin: str | None
    error: str | None


@dataclass(frozen=True, slots=True)
class ToDo:
    """Seconds until the next schedule is due (negative if it is late, None if none is planned), and whether fires are
    waiting or open."""

    seconds: float | None
    waiting: bool
    open: bool


LOOK = """
select extract(epoch from (
        select min(next_due) from schedule s
        where next_due is not null and not exists (select from namespace n where n.id = s.namespace_id and n.hold is not null)
    ) - statement_timestamp())::float8 as seconds,
    exists (select from waiting_fire) as waiting, exists (select from open_fire) as open
"""


async def look(session: Session) -> ToDo:
    """Return the due work. The query is an index scan and two usually empty tables: all that idle schedules cost."""
    return rows_as(ToDo, await session.fetch(LOOK))[0]


@dataclass(frozen=True, slots=True)
class DueSchedule:
    """A due schedule that this transaction has locked, at the database's instant `now`. It was fired up to `since`."""

    ref: str
    definition_id: int
    namespace_id: int
    since: datetime
    next_due: datetime
    now: datetime


LOCK_DUE = """
select ref, definition_id, namespace_id, since, next_due, statement_timestamp() as now,
    -- The timeout releases the row locks of a replica that hangs between this statement and its commit for ten seconds.
    set_config('idle_in_transaction_session_timeout', '10000', true)
from schedule s
-- statement_timestamp() can be used with an index. clock_timestamp() would be compared with every row.
where next_due <= statement_timestamp() and ($2::text is null or ref = $2)
    and not exists (select from namespace n where n.id = s.namespace_id and n.hold is not null)
order by next_due limit $1 for update skip locked
"""


async def lock_due(tx: Transaction, limit: int, ref: str | None = None) -> list[DueSchedule]:
    """Lock at most `limit` due schedules (or only `ref`), the most overdue first. Rows that other transactions have
    locked are skipped."""
    return columns_as(DueSchedule, await tx.fetch(LOCK_DUE, limit, ref))


@dataclass(frozen=True, slots=True)
class LockedSchedule:
    """A schedule that this transaction has locked, at the database's instant `now`. `body` is its definition as JSON.
    `held`: a hold lets nothing start. `put_aside`: an executor could not fire it, and tries again at `next_due`."""

    ref: str
    definition_id: int
    namespace_id: int
    enabled: bool
    since: datetime
    next_due: datetime | None
    body: str
    now: datetime
    held: bool
    put_aside: bool


LOCK = """
select s.ref, s.definition_id, s.namespace_id, s.enabled, s.since, s.next_due, d.body::text as body, clock_timestamp() as now,
    exists (select from namespace n where n.id = s.namespace_id and n.hold is not null) as held, s.error is not null as put_aside
from schedule s join definition d on d.id = s.definition_id
where s.ref = any($1::text[]) order by s.ref for update of s
"""


async def lock(tx: Transaction, refs: Sequence[str]) -> list[LockedSchedule]:
    """Lock the schedules among `refs` that exist, in the order of refs, until the transaction ends."""
    return rows_as(LockedSchedule, await tx.fetch(LOCK, list(refs)))


ACTIONS = """
select ref, definition_id from catalog where kind in ('action', 'workflow') and ref = any($1::text[]) and enabled
"""


async def actions(tx: Transaction, refs: Collection[str]) -> dict[str, int]:
    """Return the current versions of these actions and workflows. Missing and disabled ones are left out."""
    return {row["ref"]: row["definition_id"] for row in await tx.fetch(ACTIONS, list(refs))}


FIRE = """
select messages, created, queued, skipped, failed
from fire_schedules($1::text[], $2::timestamptz[], $3::timestamptz[], $4::text[],
    $5::text[], $6::timestamptz[], $7::text[], $8::text[], $9::text[], $10::integer[], $11::uuid[], $12::integer[],
    $13::integer[], $14::timestamptz[], $15::text[], $16::text[], $17::text[], $18::text[])
"""


async def fire(tx: Transaction, positions: Sequence[FiredUpTo], fires: Sequence[NewFire]) -> dict[str, int]:
    """Record new fires, start their executions, and record how far the schedules, which the transaction has locked,
    were fired. Return the number of created, queued, skipped and failed fires."""
    schedules = [list(column) for column in zip(*positions, strict=True)] or [[]] * len(FiredUpTo._fields)
    columns = [list(column) for column in zip(*fires, strict=True)] or [[]] * len(NewFire._fields)
    [row] = await tx.stage(FIRE, *schedules, *columns)
    return {status: row[status] for status in ("created", "queued", "skipped", "failed") if row[status]}


START_WAITING = "select messages, started from start_waiting_fires($1)"


async def start_waiting(tx: Transaction, limit: int) -> bool:
    """Start waiting fires after the end of the previous run. Return True if any were started."""
    [row] = await tx.stage(START_WAITING, limit)
    return bool(row["started"])


CANCEL_REPLACED = "select messages, canceling from cancel_replaced()"


async def cancel_replaced(tx: Transaction) -> None:
    """Request the end of runs that a waiting fire replaces."""
    await tx.stage(CANCEL_REPLACED)


@dataclass(frozen=True, slots=True)
class LostFire:
    """A fire with a lost execution, at the database's instant `now`. Without a `namespace_id`, its schedule was
    deleted too."""

    ref: str
    due_at: datetime
    kind: str
    execution_id: UUID
    recoveries: int
    definition_id: int
    namespace_id: int | None
    now: datetime


SETTLE = "select settled, lost from settle_fires($1)"


async def settle(tx: Transaction, limit: int) -> tuple[int, list[LostFire]]:
    """Record how executions of at most `limit` fires ended. Return their number, and the fires with a lost execution."""
    [row] = await tx.fetch(SETTLE, limit)
    return row["settled"], columns_as(LostFire, row["lost"])


RECOVER = """
select messages, recovered
from recover_fires($1::text[], $2::timestamptz[], $3::uuid[], $4::uuid[], $5::integer[], $6::integer[],
    $7::text[], $8::text[], $9::text[], $10::text[])
"""


async def recover(tx: Transaction, old: Sequence[UUID], fires: Sequence[NewFire]) -> int:
    """Give these fires, which lost the executions `old`, a new execution each, or end them with an error. Return the
    number of fires with a new execution."""
    [row] = await tx.stage(
        RECOVER,
        [f.schedule for f in fires],
        [f.due_at for f in fires],
        list(old),
        [f.id for f in fires],
        [f.namespace_id for f in fires],
        [f.action_id for f in fires],
        [f.params for f in fires],
        [f.options for f in fires],
        [f.origin for f in fires],
        [f.error for f in fires],
    )
    return int(row["recovered"])


PUT_ASIDE = """
update schedule set error = $2, next_due = clock_timestamp() + make_interval(secs => $3)
where ref = $1 and next_due <= clock_timestamp()
"""


async def put_aside(tx: Transaction, ref: str, error: str, seconds: float) -> None:
    """Make a schedule that cannot be fired due again in `seconds`, with its error. No instant is lost: `since` stays."""
    await tx.fetch(PUT_ASIDE, ref, error, seconds)


PUT = """
insert into schedule as s (ref, definition_id, namespace_id, enabled, since, next_due)
select * from unnest($1::text[], $2::integer[], $3::integer[], $4::boolean[], $5::timestamptz[], $6::timestamptz[])
on conflict (ref) do update
set definition_id = excluded.definition_id, namespace_id = excluded.namespace_id, since = excluded.since,
    next_due = excluded.next_due, error = null, updated_at = clock_timestamp()
"""


async def put(tx: Transaction, rows: Sequence[tuple[str, int, int, bool, datetime, datetime | None]]) -> None:
    """Insert or change schedules: (ref, definition, namespace, enabled, since, next due). `enabled` is used for new
    ones only."""
    if rows:
        await tx.fetch(PUT, *(list(column) for column in zip(*rows, strict=True)))


MOVE = """
update schedule set enabled = $2, since = $3, next_due = $4, error = null, updated_at = clock_timestamp() where ref = $1
"""


async def move(
    tx: Transaction, ref: str, *, enabled: bool, since: datetime, next_due: datetime | None
) -> None:
    """Enable, disable or pause a schedule that the transaction has locked."""
    await tx.fetch(MOVE, ref, enabled, since, next_due)


DROP_WAITING = "select drop_waiting_fires($1, $2)"


async def drop_waiting(tx: Transaction, ref: str, reason: str) -> None:
    """Skip the waiting fires of a schedule."""
    await tx.fetch(DROP_WAITING, ref, reason)


DELETE = "delete from schedule where ref = $1"


async def delete(tx: Transaction, ref: str) -> None:
    """Delete a schedule that the transaction has locked. Its fires stay."""
    await tx.fetch(DELETE, ref)
