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
            description="`active`: it fires. `paused`: for a time. `disabled`: until it is enabled. `broken`: it cannot "
            "be planned. `over`: it never fires again."
        ),
    ]
    action: str
    when: Annotated[
        str,
        Field(
            description="The times, as they were declared: a cron expression, `@every 90s`, `at ...`, or a "
            "recurrence rule."
        ),
    ]
    timezone: Annotated[str, Field(description="The IANA name of the zone in which the times are read.")]
    next_due: Annotated[
        datetime | None, Field(description="The instant of the next fire; null: it does not fire again.")
    ]
    last_due: Annotated[
        datetime | None,
        Field(description="The instant at which the last fire was due; null: it has not fired."),
    ]
    last: Annotated[
        str | None,
        Field(
            description="The status of the execution of its last fire, or else of the fire itself, such as `skipped`; "
            "null: it has not fired, or that fire is past its retention."
        ),
    ]
    last_execution: Annotated[
        UUID | None, Field(description="The id of the execution of its last fire; null: there is none.")
    ]
    waiting: Annotated[
        int, Field(description="The number of fires that wait for the execution of an earlier fire.")
    ]
    error: Annotated[str | None, Field(description="The reason why it cannot be planned; null: it can.")]
    held: Annotated[
        str | None,
        Field(
            description="The hold that keeps it from firing, such as `pack shop`: that of its action, pack, route or tenant; "
            "null: there is none. Its state does not change with the hold."
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class ScheduleState:
    """A schedule at the database's instant `now`. It was fired up to `since`; if that is to come, it is paused until
    then, or `is_ahead`: it has fired for that instant, and then the database's clock went back. `next_due` is its next fire
    (None: none), and `last` how its last fire ended. `waiting` is the number of waiting fires, `error` why it could not be
    planned, and `body` its definition as JSON. `held` is the oldest hold that keeps it from firing."""

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
    is_ahead: bool
    held: str | None

    @property
    def state(self) -> str:
        """Return disabled, paused, broken (it cannot be planned), over (it never fires again) or active."""
        if not self.enabled:
            return "disabled"
        if self.error:
            return "broken"
        if self.since > self.now and not self.is_ahead:
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
            self.held,
        )


LIST = """
select s.ref, s.definition_id, s.enabled, s.since, s.next_due, s.last_due, s.last_execution, s.error, d.body::text as body,
    statement_timestamp() as now, coalesce(f.outcome, f.status) as last,
    (select count(*) from waiting_fire w where w.schedule = s.ref) as waiting,
    s.since > statement_timestamp() and exists (select from fire f where f.schedule = s.ref and f.due_at = s.since) as is_ahead,
    (
        select h.kind || ' ' || h.name from namespace n join hold h on is_covered(h.kind, h.name, n)
        where n.id = s.namespace_id and n.hold is not null order by h.since limit 1) as held
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
    """A time at which a schedule was due, and what came of it."""

    due_at: Annotated[datetime, Field(description="The instant at which it was due.")]
    kind: Annotated[
        str,
        Field(
            description="`due`: in time. `missed`: late by more than the grace. `manual`: requested by a command. "
            "`backfill`: a past fire that was started later."
        ),
    ]
    status: Annotated[
        str,
        Field(
            description="`queued`: it waits for the execution of an earlier fire. `created`: it has an execution. "
            "`skipped`: it has none, and `error` says why. `failed`: its execution could not be "
            "started, or was lost too many times."
        ),
    ]
    outcome: Annotated[
        str | None,
        Field(description="The status of its execution, such as `completed`; null: it has no execution."),
    ]
    execution_id: Annotated[UUID | None, Field(description="The id of its execution; null: it has none.")]
    made_at: Annotated[datetime, Field(description="The instant at which the fire was recorded.")]
    made_by: Annotated[
        str | None,
        Field(description="The process that recorded it, such as `executor:NAME`; null: not known."),
    ]
    recoveries: Annotated[
        int,
        Field(
            description="The number of times that its execution vanished, such as after a partial restore, and was "
            "created again."
        ),
    ]
    started_at: Annotated[
        datetime | None,
        Field(
            description="The instant at which its execution began to run; null: it has not begun, or its "
            "history is not kept any more."
        ),
    ]
    ended_at: Annotated[
        datetime | None,
        Field(description="The instant at which its execution ended; null: it has not ended."),
    ]
    error: Annotated[
        str | None, Field(description="The reason why it was skipped or failed; null: it was neither.")
    ]
    lag: Annotated[
        float,
        Field(description="The seconds from the due instant to the instant at which the fire was recorded."),
    ]
    took: Annotated[
        float | None,
        Field(
            description="The seconds from the instant at which the fire was recorded to the end of its "
            "execution; null: it has not ended."
        ),
    ]


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
    """The counts and durations of the fires of a schedule that were due in a period. Of the fires that an outage skipped, the
    latest 50 are recorded, and only these count."""

    fires: Annotated[int, Field(description="The number of fires that were due in the period.")]
    started: Annotated[int, Field(description="The number of fires with an execution.")]
    queued: Annotated[
        int, Field(description="The number of fires that wait for the execution of an earlier fire.")
    ]
    skipped: Annotated[int, Field(description="The number of fires that were skipped.")]
    failed_to_start: Annotated[
        int,
        Field(
            description="The number of fires with an execution that could not be started, or was lost too many "
            "times."
        ),
    ]
    missed: Annotated[int, Field(description="The number of fires that were late by more than the grace.")]
    backfilled: Annotated[int, Field(description="The number of past fires that a backfill started.")]
    completed: Annotated[int, Field(description="The number of fires with an execution that completed.")]
    not_completed: Annotated[
        int, Field(description="The number of fires with an execution that ended in another way.")
    ]
    open: Annotated[int, Field(description="The number of fires with an execution that has not ended.")]
    recoveries: Annotated[
        int,
        Field(
            description="The number of times that executions of these fires vanished, and were created again."
        ),
    ]
    lag_average: Annotated[
        float | None,
        Field(
            description="The average of `lag`, in seconds, of the fires that were in time; null without any."
        ),
    ]
    lag_most: Annotated[
        float | None,
        Field(
            description="The maximum of `lag`, in seconds, of the fires that were in time; null without any."
        ),
    ]
    took_average: Annotated[
        float | None, Field(description="The average of `took`, in seconds; null if no execution has ended.")
    ]
    took_most: Annotated[
        float | None, Field(description="The maximum of `took`, in seconds; null if no execution has ended.")
    ]


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
