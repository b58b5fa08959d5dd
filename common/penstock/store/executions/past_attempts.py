"""The attempts that an execution had: when each began and ended, where, and what it came to.

Nothing is written for it: an attempt begins with a move to running and ends with the move away from there, and both are in
the history. What did not complete has a row of its own beside it, with its error."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from penstock.store.executions.executions import Execution
from penstock.store.session.database import Session
from penstock.store.session.rows import first_as, rows_as


@dataclass(slots=True)
class PastAttempt:
    """An attempt. `outcome`: `running`, `completed`, `failed` (tried again or not), `timeout`, `cancelled`, `lost` (with its
    worker), `deferred` (by itself), `waiting` (for a human), `handed_back` (its worker stopped).
    `worker` is the name of its worker. `error` is JSON: what it failed with, or what it carried over to the next one.
    Instants are the database's; all three are None of an attempt that is older than the history is kept."""

    attempt: int
    outcome: str
    worker: str | None
    started_at: datetime | None
    ended_at: datetime | None
    duration: timedelta | None
    error: str | None


ATTEMPTS = """
with moved as (
    select at, old, new, attempt, actor from history
    where execution_id = $1 and at >= $2::timestamptz - interval '1 minute'
        and ($3::timestamptz is null or at <= $3 + interval '1 minute')
), begun as (
    select attempt, at, actor from moved where new = 'running'
), ended as (
    select attempt, at, new from moved where old in ('running', 'canceling') and new <> 'canceling'
), kept as (
    select attempt, outcome, worker, at, error::text as error from attempt where execution_id = $1
    union all
    select t.attempt, t.outcome, t.worker, t.at, t.error::text
    from archive a cross join jsonb_to_recordset(a.attempts)
        as t (attempt integer, outcome text, worker text, at timestamptz, error jsonb)
    where a.id = $1
)
select n as attempt,
    coalesce(k.outcome, e.new, case $5 when 'canceling' then 'running' else $5 end) as outcome,
    regexp_replace(coalesce(b.actor, k.worker), '^worker:', '') as worker,
    b.at as started_at, coalesce(e.at, k.at) as ended_at, coalesce(e.at, k.at) - b.at as duration, k.error
from generate_series(1, $4) n
left join begun b on b.attempt = n left join ended e on e.attempt = n left join kept k on k.attempt = n
order by n
"""


async def attempts(session: Session, execution: Execution) -> list[PastAttempt]:
    """Every attempt of an execution, the one that runs now and the one that completed too, oldest first."""
    rows = await session.fetch(
        ATTEMPTS,
        execution.id,
        execution.created_at,
        execution.finished_at,
        execution.attempt,
        execution.status,
    )
    return rows_as(PastAttempt, rows)


@dataclass(frozen=True, slots=True)
class LatestAttempt:
    """The attempt before the one to come, and its error, or what it carries over (JSON)."""

    attempt: int
    error: str | None


LATEST = (
    "select attempt, error::text as error from attempt where execution_id = $1 order by attempt desc limit 1"
)


async def latest(session: Session, execution: UUID) -> LatestAttempt | None:
    """The latest attempt that did not complete, of an execution that is open."""
    return first_as(LatestAttempt, await session.fetch(LATEST, execution))
