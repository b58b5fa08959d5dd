"""The figures of an overview: the number of recent ends, their durations, and the open executions by their cause."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

import orjson
from pydantic import Field

from penstock.language.moves import BAD, FINAL
from penstock.store.session.database import Session
from penstock.store.session.rows import rows_as

RESOLUTION = 1.02
"""The ratio of the upper to the lower edge of a bin of durations. A percentile that is read from bins is off by at most 1 %."""
SHORTEST = 0.001
"""The seconds at the lower edge of the first bin. Shorter durations are in that bin."""


@dataclass(frozen=True, slots=True)
class Slice:
    """The ends within a slice of time: `number` counts slices since 1970, and `ends` the executions with tasks of workflows.
    The others leave tasks out: `runs`, and `failed` among them. `bins` are the numbers of runs by the bin of their time from
    creation to end. Percentiles of slices do not add up, and bins do."""

    number: int
    ends: int
    runs: int
    failed: int
    bins: Mapping[int, int]


def percentile(bins: Mapping[int, int], part: float) -> float | None:
    """Return the duration in seconds below which `part` (0 to 1) of the binned durations are; None without any. Between two
    durations it is interpolated, as by `percentile_cont` of PostgreSQL."""
    count = sum(bins.values())
    if not count:
        return None
    rank = part * (count - 1)
    lower, upper = _duration_at(bins, math.floor(rank)), _duration_at(bins, math.ceil(rank))
    return lower + (upper - lower) * (rank - math.floor(rank))


def _duration_at(bins: Mapping[int, int], rank: int) -> float:
    """Return the seconds in the middle of the bin with the duration of this rank (0 for the shortest)."""
    below = 0
    for number in sorted(bins):
        below += bins[number]
        if rank < below:
            return SHORTEST * math.pow(RESOLUTION, number + 0.5)
    raise ValueError(f"there is no duration of rank {rank}")


SLICES = """
with gone as (
    select h.new, floor(extract(epoch from h.at) / $3)::bigint as number, e.parent,
        -- The creation time of an archived execution is read from its id.
        extract(epoch from h.at - coalesce(e.created_at, to_timestamp(
            ('x' || lpad(left(replace(h.execution_id::text, '-', ''), 12), 16, '0'))::bit(64)::bigint / 1000.0)))::float8 as took
    from history h left join execution e on e.id = h.execution_id
    where h.at >= to_timestamp($1::float8) and h.at < to_timestamp($2::float8) and h.new = any($4::text[])
), binned as (
    select number, floor(ln(greatest(took, $6::float8) / $6) / ln($7::float8))::integer as bin, count(*) as ends,
        count(*) filter (where parent is null) as runs,
        count(*) filter (where parent is null and new = any($5::text[])) as failed
    from gone group by 1, 2
)
select number, sum(ends)::bigint as ends, sum(runs)::bigint as runs, sum(failed)::bigint as failed,
    coalesce(jsonb_object_agg(bin, runs) filter (where runs > 0), '{}') as bins
from binned group by number order by number
"""


async def slices(session: Session, first: int, last: int, seconds: int) -> list[Slice]:
    """Return the slices from `first` to before `last`, each of `seconds`, without those in which nothing ended."""
    rows = await session.fetch(
        SLICES,
        float(first * seconds),
        float(last * seconds),
        seconds,
        sorted(FINAL),
        sorted(BAD),
        SHORTEST,
        RESOLUTION,
    )
    return [
        Slice(
            row["number"],
            row["ends"],
            row["runs"],
            row["failed"],
            {int(number): count for number, count in orjson.loads(row["bins"]).items()},
        )
        for row in rows
    ]


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
