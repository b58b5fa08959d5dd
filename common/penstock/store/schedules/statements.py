"""Schedules and their fires: taking what is due, recording fires, settling them, and reading about both."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from penstock.store.database import Row, Session, Transaction


class Standing(NamedTuple):
    """Where a schedule stands after it was fired. Without `since` its times stay as they are."""

    ref: str
    since: datetime | None
    next_due: datetime | None
    problem: str | None


class FireRow(NamedTuple):
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


LOOK = """
select extract(epoch from (select min(next_due) from schedule where next_due is not null) - statement_timestamp())::float8
        as seconds,
    exists (select from waiting_fire) as waiting, exists (select from open_fire) as open
"""


async def look(session: Session) -> Row:
    """Seconds until the next schedule is due (negative: it is late; None: there is none), and whether fires wait or
    are open. An index scan and two empty tables: this is all that idle schedules cost."""
    return (await session.fetch(LOOK))[0]


# statement_timestamp(), as an index can be searched by it; clock_timestamp() would be compared with every row.
# A replica that stops between this and its commit loses the rows after ten seconds.
TAKE = """
select ref, definition_id, namespace_id, since, next_due, statement_timestamp() as now,
    set_config('idle_in_transaction_session_timeout', '10000', true)
from schedule
where next_due <= statement_timestamp() and ($2::text is null or ref = $2)
order by next_due limit $1 for update skip locked
"""


async def take(tx: Transaction, limit: int, ref: str | None = None) -> list[Row]:
    """Lock schedules that are due (of these, `ref`), the latest first, without waiting for those that others hold."""
    return await tx.fetch(TAKE, limit, ref)


HOLD = """
select s.ref, s.definition_id, s.namespace_id, s.enabled, s.since, s.next_due, d.body::text as body, clock_timestamp() as now
from schedule s join definition d on d.id = s.definition_id
where s.ref = any($1::text[]) order by s.ref for update of s
"""


async def hold(tx: Transaction, refs: Sequence[str]) -> list[Row]:
    """Lock these schedules, as far as they exist, in order, until the transaction ends."""
    return await tx.fetch(HOLD, list(refs))


ACTIONS = """
select ref, definition_id from catalog where kind in ('action', 'workflow') and ref = any($1::text[]) and enabled
"""


async def actions(tx: Transaction, refs: Collection[str]) -> dict[str, int]:
    """The current versions of these actions and workflows, as far as they are there and enabled."""
    return {row["ref"]: row["definition_id"] for row in await tx.fetch(ACTIONS, list(refs))}


FIRE = """
select messages, created, queued, skipped, failed
from fire_schedules($1::text[], $2::timestamptz[], $3::timestamptz[], $4::text[],
    $5::text[], $6::timestamptz[], $7::text[], $8::text[], $9::text[], $10::integer[], $11::uuid[], $12::integer[],
    $13::integer[], $14::timestamptz[], $15::text[], $16::text[], $17::text[], $18::text[])
"""


async def fire(tx: Transaction, standings: Sequence[Standing], fires: Sequence[FireRow]) -> dict[str, int]:
    """Record fires that are new, start their executions, and write down where the schedules, which the transaction
    holds, stand now. Returns how many became created, queued, skipped and failed."""
    schedules = [list(column) for column in zip(*standings, strict=True)] or [[]] * len(Standing._fields)
    columns = [list(column) for column in zip(*fires, strict=True)] or [[]] * len(FireRow._fields)
    [row] = await tx.stage(FIRE, *schedules, *columns)
    return {status: row[status] for status in ("created", "queued", "skipped", "failed") if row[status]}


async def start_waiting(tx: Transaction, limit: int) -> bool:
    """Start waiting fires whose turn has come. Says whether there were any."""
    [row] = await tx.stage("select messages, started from start_waiting_fires($1)", limit)
    return bool(row["started"])


async def cancel_replaced(tx: Transaction) -> None:
    """Ask the runs to end that a waiting fire replaces."""
    await tx.stage("select messages, canceling from cancel_replaced()")


SETTLE = "select settled, lost from settle_fires($1)"


async def settle(tx: Transaction, limit: int) -> tuple[int, list[Row]]:
    """Write down how executions of fires ended: how many did, and those fires whose execution was lost."""
    [row] = await tx.fetch(SETTLE, limit)
    return row["settled"], row["lost"]


RECOVER = """
select messages, recovered from recover_fires($1::text[], $2::timestamptz[], $3::uuid[], $4::uuid[], $5::integer[], $6::integer[],
    $7::text[], $8::text[], $9::text[], $10::text[])
"""


async def recover(tx: Transaction, old: Sequence[UUID], fires: Sequence[FireRow]) -> int:
    """Give fires, whose executions `old` were lost, others, or end those that have an error. Returns how many got one."""
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
    """Leave a schedule that cannot be fired alone for a while. Nothing of it is lost: `since` stays."""
    await tx.fetch(PUT_ASIDE, ref, error, seconds)


PUT = """
insert into schedule as s (ref, definition_id, namespace_id, enabled, since, next_due)
select * from unnest($1::text[], $2::integer[], $3::integer[], $4::boolean[], $5::timestamptz[], $6::timestamptz[])
on conflict (ref) do update
set definition_id = excluded.definition_id, namespace_id = excluded.namespace_id, since = excluded.since,
    next_due = excluded.next_due, error = null, updated_at = clock_timestamp()
"""


async def put(tx: Transaction, rows: Sequence[tuple[str, int, int, bool, datetime, datetime | None]]) -> None:
    """Make or change schedules: (ref, definition, namespace, enabled, since, next due). `enabled` is for new ones."""
    if rows:
        await tx.fetch(PUT, *(list(column) for column in zip(*rows, strict=True)))


MOVE = """
update schedule set enabled = $2, since = $3, next_due = $4, error = null, updated_at = clock_timestamp() where ref = $1
"""


async def move(
    tx: Transaction, ref: str, *, enabled: bool, since: datetime, next_due: datetime | None
) -> None:
    """Enable, disable or pause a schedule that the transaction holds."""
    await tx.fetch(MOVE, ref, enabled, since, next_due)


async def drop_waiting(tx: Transaction, ref: str, reason: str) -> None:
    """The fires of a schedule that wait will not start."""
    await tx.fetch("select drop_waiting_fires($1, $2)", ref, reason)


LIST = """
select s.ref, s.definition_id, s.enabled, s.since, s.next_due, s.last_due, s.last_execution, s.error, d.body::text as body,
    statement_timestamp() as now, coalesce(f.outcome, f.status) as last,
    (select count(*) from waiting_fire w where w.schedule = s.ref) as waiting
from schedule s
join definition d on d.id = s.definition_id
left join fire f on f.schedule = s.ref and f.due_at = s.last_due
where $1::text is null or s.ref = $1
order by s.ref
"""


async def page(session: Session | Transaction, ref: str | None = None) -> list[Row]:
    """Every schedule, or the one of that ref, with what it is and how its last fire ended."""
    return await session.fetch(LIST, ref)


HISTORY = """
select f.due_at, f.kind, f.status, coalesce(f.outcome, e.status) as outcome, f.execution_id, f.made_at, f.made_by,
    f.recoveries, f.ended_at, f.error, extract(epoch from f.made_at - f.due_at)::float8 as lag,
    extract(epoch from f.ended_at - f.made_at)::float8 as took
from fire f left join execution e on e.id = f.execution_id and f.outcome is null
where f.schedule = $1 and ($3::timestamptz is null or f.due_at < $3)
order by f.due_at desc limit $2
"""


async def history(session: Session, ref: str, limit: int, before: datetime | None = None) -> list[Row]:
    """The newest fires of a schedule, newest first. `lag` and `took` are in seconds."""
    return await session.fetch(HISTORY, ref, limit, before)


STATS = """
select count(*) as fires, count(*) filter (where status = 'created') as started,
    count(*) filter (where status = 'queued') as queued, count(*) filter (where status = 'skipped') as skipped,
    count(*) filter (where status = 'failed') as failed_to_start, count(*) filter (where kind = 'missed') as missed,
    count(*) filter (where kind = 'backfill') as backfilled, count(*) filter (where outcome = 'completed') as completed,
    count(*) filter (where outcome <> 'completed') as not_completed,
    count(*) filter (where status = 'created' and outcome is null) as open, coalesce(sum(recoveries), 0) as recoveries,
    avg(extract(epoch from made_at - due_at)) filter (where kind = 'due')::float8 as lag_average,
    max(extract(epoch from made_at - due_at)) filter (where kind = 'due')::float8 as lag_most,
    avg(extract(epoch from ended_at - made_at))::float8 as took_average,
    max(extract(epoch from ended_at - made_at))::float8 as took_most
from fire where schedule = $1 and due_at > statement_timestamp() - make_interval(secs => $2)
"""


async def stats(session: Session, ref: str, seconds: float) -> Row:
    """Counts and times (in seconds) of the fires of a schedule that were due in the last `seconds`."""
    return (await session.fetch(STATS, ref, seconds))[0]


KNOWN = "select due_at, status from fire where schedule = $1 and due_at = any($2::timestamptz[])"


async def known(db: Session | Transaction, ref: str, dues: Sequence[datetime]) -> dict[datetime, str]:
    """The statuses of those of these fires that exist."""
    return {row["due_at"]: row["status"] for row in await db.fetch(KNOWN, ref, list(dues))}
