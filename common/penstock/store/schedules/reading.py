"""Queries of schedules: their states, fires and figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import orjson
from pydantic import Field

from penstock.language.schedules.compiled_schedule import expression_of
from penstock.store.session.database import Session, Transaction
from penstock.store.session.rows import rows_as


@dataclass(frozen=True, slots=True)
class ScheduleSummary:
    """A schedule: its times, its next fire and the outcome of its last one."""

    ref: str
    state: Annotated[
        str,
        Field(
            description="active, paused, disabled, broken (it cannot be planned), over (it never fires again)"
        ),
    ]
    action: str
    when: str
    timezone: str
    next_due: datetime | None
    last_due: datetime | None
    last: Annotated[str | None, Field(description="The outcome of its last fire.")]
    last_execution: UUID | None
    waiting: Annotated[int, Field(description="The number of fires that wait for the previous execution.")]
    error: str | None


@dataclass(frozen=True, slots=True)
class ScheduleState:
    """A schedule at the database's instant `now`. It was fired up to `since`; if that is to come, it is paused until
    then. `next_due` is its next fire (None: none), and `last` how its last fire ended. `waiting` is the number of
    waiting fires, `error` why it could not be planned, and `body` its definition as JSON."""

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

    @property
    def state(self) -> str:
        """Return disabled, paused, broken (it cannot be planned), over (it never fires again) or active."""
        if not self.enabled:
            return "disabled"
        if self.error:
            return "broken"
        if self.since > self.now:
            return "paused"
        return "over" if self.next_due is None else "active"

    @property
    def summary(self) -> ScheduleSummary:
        """Return the schedule without its definition."""
        body: dict[str, Any] = orjson.loads(self.body)
        return ScheduleSummary(
            self.ref,
            self.state,
            body["action"],
            expression_of(body),
            body.get("timezone") or "UTC",
            self.next_due,
            self.last_due,
            self.last,
            self.last_execution,
            self.waiting,
            self.error,
        )


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
    """Return every schedule by ref, or the one with this ref."""
    return rows_as(ScheduleState, await db.fetch(LIST, ref))


@dataclass(frozen=True, slots=True)
class Fire:
    """A due instant of a schedule, and its fire. `kind` is due, missed, manual or backfill; `status` is created,
    queued, skipped or failed; `outcome` is the status of the execution. `made_by` recorded it at `made_at`.
    `recoveries`: how often its execution was lost. `started_at`: when the execution began to run. `lag`: seconds by
    which the fire was recorded late; `took`: seconds from then to the end of the execution."""

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
    """Return the newest fires of a schedule, newest first; only fires due before `before`, if that is set."""
    return rows_as(Fire, await session.fetch(HISTORY, ref, limit, before))


@dataclass(frozen=True, slots=True)
class FireStats:
    """Counts of fires, and times in seconds: the delay of fires that were due (`lag`), and the duration until the
    executions ended (`took`). Without fires there are no times."""

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
    """Return the statuses of the fires among `dues` that exist."""
    return {row["due_at"]: row["status"] for row in await db.fetch(KNOWN, ref, list(dues))}
