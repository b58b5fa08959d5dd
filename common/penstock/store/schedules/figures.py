"""Figures and lists of schedules for the metrics and the health check."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from penstock.language.schedules.fire_kinds import EARLIER_TOO
from penstock.store.session.database import Session
from penstock.store.session.rows import rows_as


@dataclass(frozen=True, slots=True)
class Figures:
    """Counts of schedules, and rates of their fires over a window. `lag` and `took` are in seconds."""

    total: int
    active: int
    late: int
    broken: int
    erroring: int
    per_minute: float
    lag: float
    failure_rate: float
    took: float


@dataclass(frozen=True, slots=True)
class FireCount:
    """The number of fires of a schedule in some state, and the due instant of the `first` of them (for missed fires:
    the last). `has_more`: earlier ones were not recorded."""

    schedule: str
    count: int
    first: datetime
    has_more: bool = False


@dataclass(frozen=True, slots=True)
class Erroring:
    """A schedule with a bad end of its latest ended fire; `how` is that outcome."""

    schedule: str
    due_at: datetime
    how: str
    error: str | None
    execution_id: UUID | None


@dataclass(frozen=True, slots=True)
class Troubled:
    """A schedule that could not be planned (`error`), or that is `late` by so many seconds."""

    schedule: str
    error: str | None
    next_due: datetime | None
    late: float | None


IS_LATE = """next_due < statement_timestamp() - make_interval(secs => $1)
    and not exists (select from namespace n where n.id = schedule.namespace_id and n.hold is not null)"""
"""An SQL condition: a schedule has been due for `$1` seconds, and no hold keeps it from firing."""

LATEST_END_IS_BAD = """
cross join lateral (
    select f.due_at, f.outcome, f.status, f.error, f.execution_id from fire f
    where f.schedule = s.ref and (f.outcome is not null or f.status = 'failed')
        and f.due_at > coalesce(s.last_due, s.since) - interval '1 day'
        and f.due_at > statement_timestamp() - interval '8 days'
    order by f.due_at desc limit 1
) f
where s.enabled and (f.status = 'failed' or f.outcome in ('failed', 'timeout', 'abandoned'))
"""
"""An SQL join: the latest fire of a schedule `s` that is known to have ended, if it ended badly. The very latest fire
may run for longer than the period."""

# The query reads the small table of schedules, the latest end of each by the primary key, and the fires of the last
# minutes by a BRIN index.
FIGURES = f"""
select s.*, l.erroring, f.*
from (
    select count(*)::integer as total, count(*) filter (where next_due is not null)::integer as active,
        count(*) filter (where {IS_LATE})::integer as late,
        count(*) filter (where error is not null)::integer as broken
    from schedule
) s cross join (
    select count(*)::integer as erroring from schedule s {LATEST_END_IS_BAD}
) l cross join (
    select count(*) filter (where status = 'created') * 60 / $2::float8 as per_minute,
        coalesce(max(extract(epoch from made_at - due_at)) filter (where kind = 'due'), 0)::float8 as lag,
        coalesce(avg((status = 'failed' or outcome <> 'completed')::integer)
            filter (where status = 'failed' or outcome is not null), 0)::float8 as failure_rate,
        coalesce(avg(extract(epoch from ended_at - made_at)), 0)::float8 as took
    from fire
    where made_at > statement_timestamp() - make_interval(secs => $2)
        and due_at > statement_timestamp() - make_interval(secs => $2) - interval '1 hour'
) f
"""


async def figures(session: Session, late: float, window: float) -> Figures:
    """Return the figures, with rates over the last `window` seconds. A schedule is late if it has been due for `late`
    seconds and is not held."""
    return rows_as(Figures, await session.fetch(FIGURES, late, window))[0]


ORPHANED = """
select o.schedule, count(*) as count, min(o.due_at) as first
from open_fire o left join execution e on e.id = o.execution_id
where o.made_at < statement_timestamp() - make_interval(secs => $1) and (
    (e.id is null and not exists (select from archive a where a.id = o.execution_id and a.finished_at >= o.made_at))
    or (e.finished_at is null and e.attempt = 0
        and coalesce(e.since, e.ready_at) < statement_timestamp() - make_interval(secs => $1)))
group by o.schedule order by 2 desc, 1
"""


async def orphaned(session: Session, age: float) -> list[FireCount]:
    """Return schedules with fires that have lost their execution, or that did not start for `age` seconds."""
    return rows_as(FireCount, await session.fetch(ORPHANED, age))


STALLED = """
select o.schedule, count(*) as count, min(o.due_at) as first
from open_fire o join execution e on e.id = o.execution_id
where e.finished_at is null and e.attempt > 0
    and coalesce(e.since, e.ready_at) < statement_timestamp() - make_interval(secs => $1)
    and o.made_at < statement_timestamp() - make_interval(secs => $1)
group by o.schedule order by 2 desc, 1
"""


async def stalled(session: Session, age: float) -> list[FireCount]:
    """Return schedules with runs that became ready `age` seconds ago or earlier, have started, and have not ended."""
    return rows_as(FireCount, await session.fetch(STALLED, age))


ERRORING = f"""
select s.ref as schedule, f.due_at, coalesce(f.outcome, f.status) as how, f.error, f.execution_id
from schedule s {LATEST_END_IS_BAD}
order by s.ref
"""


async def erroring(session: Session) -> list[Erroring]:
    """Return enabled schedules for which the latest known end of a fire was bad."""
    return rows_as(Erroring, await session.fetch(ERRORING))


MISSED = """
select schedule, count(*) as count, max(due_at) as first,
    coalesce(bool_or(right(error, length($2)) = $2), false) as has_more
from fire
where kind = 'missed' and made_at > statement_timestamp() - make_interval(secs => $1)
group by schedule order by 2 desc, 1
"""


async def missed(session: Session, window: float) -> list[FireCount]:
    """Return schedules with fires that were recorded as missed in the last `window` seconds."""
    return rows_as(FireCount, await session.fetch(MISSED, window, EARLIER_TOO))


TROUBLED = f"""
select ref as schedule, error, next_due, extract(epoch from statement_timestamp() - next_due)::float8 as late
from schedule where error is not null or {IS_LATE} order by ref
"""


async def troubled(session: Session, late: float) -> list[Troubled]:
    """Return schedules that could not be planned, and those that have been due for `late` seconds, were not fired, and are not
    held."""
    return rows_as(Troubled, await session.fetch(TROUBLED, late))


@dataclass(frozen=True, slots=True)
class FiredAhead:
    """A schedule that has fired up to an instant which is to come."""

    schedule: str
    since: datetime


AHEAD = """
select s.ref as schedule, s.since from schedule s
where s.enabled and s.since > clock_timestamp() + make_interval(secs => $1)
    and exists (select from fire f where f.schedule = s.ref and f.due_at = s.since)
order by s.ref
"""


async def ahead(session: Session, seconds: float) -> list[FiredAhead]:
    """Return the schedules that have fired for an instant which is more than `seconds` to come, since the database's clock
    went back later. An instant up to which a schedule is paused has no fire."""
    return rows_as(FiredAhead, await session.fetch(AHEAD, seconds))
