"""The attempts of an execution: the beginning and end of each, its worker and its outcome.

They are read from the history: an attempt begins with a move to running, and ends with the move away from it. An
attempt that did not complete also has a row of its own, with its error. An attempt that waited, and did not run again,
has the outcome of its execution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field

from penstock.language.moves import FINAL
from penstock.store.executions.executions import Execution
from penstock.store.session.database import Session
from penstock.store.session.http_field_types import JsonTextOrNull, Seconds
from penstock.store.session.rows import first_as, rows_as


@dataclass(slots=True)
class PastAttempt:
    """An attempt of an execution."""

    attempt: int
    outcome: Annotated[
        str,
        Field(
            description="`running`, `completed`, `failed`, `timeout`, `cancelled`, `lost` (with its worker), "
            "`deferred` (by the action, to a later instant), `waiting` (it released its worker to wait), `handed_back` (its "
            "worker stopped), or another status of the execution."
        ),
    ]
    worker: Annotated[
        str | None, Field(description="The name of the worker that ran it; null: not known, or none did.")
    ]
    started_at: Annotated[
        datetime | None,
        Field(
            description="The instant at which a worker began it; null: none did, or its history is not kept any more."
        ),
    ]
    ended_at: Annotated[
        datetime | None,
        Field(
            description="The instant at which it ended; null: it has not ended, or its history is not kept any more."
        ),
    ]
    duration: Annotated[
        Seconds | None,
        Field(
            description="The seconds from its start to its end; null: it has not ended, or its history is not "
            "kept any more."
        ),
    ]
    error: Annotated[
        JsonTextOrNull,
        Field(description="The error of the attempt, or the values that it carried over to the next one."),
    ]


ATTEMPTS = """
with moved as (
    select at, old, new, attempt, actor from moves_of_execution($1, $2, $3)
), begun as (
    select attempt, at, actor from moved where new = 'running'
), ended as (
    select attempt, at, new from moved where old in ('running', 'canceling') and new <> 'canceling'
), kept as (
    select attempt, outcome, worker, at, error from failed_attempts($1)
)
select n as attempt,
    coalesce(case when n <> $4 or not $6 or k.outcome <> 'waiting' then k.outcome else $5 end, e.new,
        case $5 when 'canceling' then 'running' else $5 end) as outcome,
    regexp_replace(coalesce(b.actor, k.worker), '^(worker|gateway):', '') as worker,
    b.at as started_at, coalesce(e.at, k.at) as ended_at, coalesce(e.at, k.at) - b.at as duration, k.error
from generate_series(1, $4) n
left join begun b on b.attempt = n left join ended e on e.attempt = n left join kept k on k.attempt = n
order by n
"""


async def attempts(session: Session, execution: Execution) -> list[PastAttempt]:
    """Return every attempt of an execution, oldest first; also the running one, and the one that completed."""
    rows = await session.fetch(
        ATTEMPTS,
        execution.id,
        execution.created_at,
        execution.finished_at,
        execution.attempt,
        execution.status,
        execution.status in FINAL,
    )
    return rows_as(PastAttempt, rows)


@dataclass(frozen=True, slots=True)
class LatestAttempt:
    """The last attempt that did not complete, and its error or the values that it carries over (JSON)."""

    attempt: int
    error: str | None


LATEST = (
    "select attempt, error::text as error from attempt where execution_id = $1 order by attempt desc limit 1"
)


async def latest(session: Session, execution: UUID) -> LatestAttempt | None:
    """Return the last attempt of an open execution that did not complete; None for none."""
    return first_as(LatestAttempt, await session.fetch(LATEST, execution))


@dataclass(slots=True)
class HandedBack:
    """The attempts in a row, up to the last one, that workers handed back: their number, the names of the workers (at most
    five), and the seconds since the first of them."""

    execution: UUID
    attempts: int
    workers: list[str]
    seconds: Seconds


HANDED_BACK = """
select a.execution_id as execution, count(*)::integer as attempts,
    (array_agg(distinct regexp_replace(coalesce(a.worker, ''), '^(worker|gateway):', '')))[:5] as workers,
    clock_timestamp() - min(a.at) as seconds
from unnest($1::uuid[]) x join attempt a on a.execution_id = x
where a.attempt > coalesce((select max(o.attempt) from attempt o
    where o.execution_id = x and o.outcome <> 'handed_back'), 0)
group by a.execution_id
"""


async def handed_back(session: Session, ids: Sequence[UUID]) -> list[HandedBack]:
    """Return the last attempts of these open executions, if workers handed them back."""
    return rows_as(HandedBack, await session.fetch(HANDED_BACK, list(ids)))
