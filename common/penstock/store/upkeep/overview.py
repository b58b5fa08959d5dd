"""The figures of an overview: the number of recent ends, their durations, and the open executions by their cause."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from pydantic import Field

from penstock.language.moves import BAD, FINAL
from penstock.store.session.database import Session
from penstock.store.session.rows import rows_as


@dataclass(frozen=True, slots=True)
class Slice:
    """The ends within a slice of time: `number` counts slices since 1970, and `ends` the executions with tasks of workflows.
    The others leave tasks out: `runs`, `failed` among them, and their seconds from creation to end (None without any)."""

    number: int
    ends: int
    runs: int
    failed: int
    p50: float | None
    p95: float | None


SLICES = """
with gone as (
    select h.new, floor(extract(epoch from h.at) / $3)::bigint as number, e.parent,
        -- The creation time of an archived execution is read from its id.
        extract(epoch from h.at - coalesce(e.created_at, to_timestamp(
            ('x' || lpad(left(replace(h.execution_id::text, '-', ''), 12), 16, '0'))::bit(64)::bigint / 1000.0)))::float8 as took
    from history h left join execution e on e.id = h.execution_id
    where h.at >= to_timestamp($1::float8) and h.at < to_timestamp($2::float8) and h.new = any($4::text[])
)
select number, count(*) as ends, count(*) filter (where parent is null) as runs,
    count(*) filter (where parent is null and new = any($5::text[])) as failed,
    (percentile_cont(0.5) within group (order by greatest(took, 0)) filter (where parent is null)) as p50,
    (percentile_cont(0.95) within group (order by greatest(took, 0)) filter (where parent is null)) as p95
from gone group by number order by number
"""


async def slices(session: Session, first: int, last: int, seconds: int) -> list[Slice]:
    """Return the slices from `first` to before `last`, each of `seconds`, without those in which nothing ended."""
    rows = await session.fetch(
        SLICES, float(first * seconds), float(last * seconds), seconds, sorted(FINAL), sorted(BAD)
    )
    return rows_as(Slice, rows)


@dataclass(frozen=True, slots=True)
class OpenExecutions:
    """The open executions that wait for the same thing."""

    cause: Annotated[
        str,
        Field(
            description="The cause of the wait. `running`: none, a worker has them. `stopping`: a worker is about to end "
            "them. `worker`: a free worker. `route`: a live worker that can run them. `limit`: a slot. `timer`: a retry or "
            "a delay. `held`: the release of a hold. `paused`: the resume of a workflow. "
            "`executor`: an executor that schedules them. `human`: an answer. "
            "`event`: an event. `asleep`: a durable function without open children waits for a timer, a signal or an "
            "outside system. "
            "`workflow`: their own tasks or children."
        ),
    ]
    count: Annotated[int, Field(description="The number of executions.")]
    oldest: Annotated[
        datetime | None,
        Field(
            description="The instant at which the oldest of them became ready, or began its present wait; "
            "null: there is none."
        ),
    ]
    top_level: Annotated[
        int, Field(description="The number of top-level executions among them, which lists show.")
    ] = 0


STANDING = """
select case
        when exists (select from paused_workflow k where k.execution_id = case e.status
            when 'running' then e.id when 'requested' then e.parent end) then 'paused'
        when n.kind = 'workflow' and e.status = 'running' then 'workflow'
        when e.status = 'running' then 'running'
        when e.status = 'canceling' then 'stopping'
        when e.status = 'scheduled' then 'worker'
        when e.status = 'waiting' and n.kind = 'wait' and i.execution_id is null then 'event'
        when e.status = 'waiting' and i.execution_id is null and exists (
            select from execution c where c.parent = e.id and c.finished_at is null) then 'workflow'
        when e.status = 'waiting' and i.execution_id is null then 'asleep'
        when e.status = 'waiting' then 'human'
        when exists (select from held_execution h where h.execution_id = e.id) then 'held'
        when e.not_before > clock_timestamp() then 'timer'
        else 'executor' end as cause,
    count(*) as count, min(coalesce(e.since, e.ready_at)) as oldest,
    count(*) filter (where e.parent is null) as top_level
from live l join execution e on e.id = l.execution_id join namespace n on n.id = e.namespace_id
left join inquiry i on i.execution_id = e.id and e.status = 'waiting' and i.status = 'created'
where e.finished_at is null group by 1
union all
select case l.gate_kind when 'worker' then 'route' else 'limit' end, count(*), min(w.ready_at),
    count(*) filter (where e.parent is null)
from waiter w join lane l on l.id = w.lane join execution e on e.id = w.execution_id group by 1
"""


async def standing(session: Session) -> list[OpenExecutions]:
    """Count the open executions by the cause of their wait."""
    return rows_as(OpenExecutions, await session.fetch(STANDING))
