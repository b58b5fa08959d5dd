"""Schedules as they are looked at: each with its state, its fires, and figures of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from penstock.store.session.database import Session, Transaction
from penstock.store.session.rows import rows_as


@dataclass(frozen=True, slots=True)
class ScheduleState:
    """A schedule at the database's instant `now`: fired up to `since`, or paused until then if that is to come; when it
    fires next (None: never again), how its last fire ended (`last`), how many fires are `waiting`, what is wrong with it
    (`error`), and its definition as JSON (`body`)."""

    ref: str
    definition_id: int
    enabled: bool
    since: datetime
    next_due: datetime | None
    last_due: datetime | None
    last_execution: UUID | None
    error: str | None
    body: str
    now: datetime
    last: str | None
    waiting: int


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


async def listed(db: Session | Transaction, ref: str | None = None) -> list[ScheduleState]:
    """Every schedule by ref, or the one of that ref."""
    return rows_as(ScheduleState, await db.fetch(LIST, ref))


@dataclass(frozen=True, slots=True)
class Fire:
    """A due instant of a schedule, and its fire: `kind` (due, missed, manual, backfill), `status` (created,
    queued, skipped, failed), `outcome` (the status of its execution), and its author and instant. `recoveries` is how
    often its execution was lost. `started_at` is when that began to run, before its end. In seconds, `lag` is how late
    the fire was created, and `took` how long its execution ran."""

    due_at: datetime
    kind: str
    status: str
    outcome: str | None
    execution_id: UUID | None
    made_at: datetime
    made_by: str | None
    recoveries: int
    started_at: datetime | None
    ended_at: datetime | None
    error: str | None
    lag: float
    took: float | None


HISTORY = """
select f.due_at, f.kind, f.status, coalesce(f.outcome, e.status) as outcome, f.execution_id, f.made_at, f.made_by,
    f.recoveries, (
        select min(h.at) from history h where h.execution_id = f.execution_id and h.new = 'running'
            and h.at >= f.made_at and (h.at <= coalesce(f.ended_at, e.finished_at) or coalesce(f.ended_at, e.finished_at) is null)
    ) as started_at, coalesce(f.ended_at, e.finished_at) as ended_at, f.error,
    extract(epoch from f.made_at - f.due_at)::float8 as lag,
    extract(epoch from coalesce(f.ended_at, e.finished_at) - f.made_at)::float8 as took
from fire f left join execution e on e.id = f.execution_id and f.outcome is null
where f.schedule = $1 and ($3::timestamptz is null or f.due_at < $3)
order by f.due_at desc limit $2
"""


async def history(session: Session, ref: str, limit: int, before: datetime | None = None) -> list[Fire]:
    """The newest fires of a schedule (`before` an instant, if given), newest first."""
    return rows_as(Fire, await session.fetch(HISTORY, ref, limit, before))


@dataclass(frozen=True, slots=True)
class FireStats:
    """Counts of fires, and times of theirs in seconds: how late those were made that were due (`lag`), and how long
    executions `took`; None where there are none."""

    fires: int
    started: int
    queued: int
    skipped: int
    failed_to_start: int
    missed: int
    backfilled: int
    completed: int
    not_completed: int
    open: int
    recoveries: int
    lag_average: float | None
    lag_most: float | None
    took_average: float | None
    took_most: float | None


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


async def stats(session: Session, ref: str, seconds: float) -> FireStats:
    """Count the fires of a schedule that were due in the last `seconds`."""
    return rows_as(FireStats, await session.fetch(STATS, ref, seconds))[0]


KNOWN = "select due_at, status from fire where schedule = $1 and due_at = any($2::timestamptz[])"


async def known(db: Session | Transaction, ref: str, dues: Sequence[datetime]) -> dict[datetime, str]:
    """The statuses of those of these fires that exist."""
    return {row["due_at"]: row["status"] for row in await db.fetch(KNOWN, ref, list(dues))}
