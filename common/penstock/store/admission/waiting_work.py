"""The amounts of waiting work, by route and by line. Each query counts the rows; no counters are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from penstock.store.session.database import Session
from penstock.store.session.rows import rows_as


@dataclass(frozen=True, slots=True)
class RouteWork:
    """The queue of a route: the numbers of waiting and running executions, and of workers that serve it."""

    queue: Annotated[str, Field(description="The work queue, such as `work.gpu` for the route `gpu`.")]
    requested: Annotated[
        int,
        Field(
            description="The number of executions with the status `requested`: they are to be admitted, or "
            "wait for an instant (a delay, a retry)."
        ),
    ]
    ready: Annotated[
        int,
        Field(
            description="The number of executions with the status `scheduled`: they wait only for a free worker."
        ),
    ]
    running: Annotated[
        int, Field(description="The number of executions that a worker has: `running`, and `canceling`.")
    ]
    oldest: Annotated[
        float | None,
        Field(
            description="The seconds for which the oldest of the `ready` executions has waited; null: none is ready."
        ),
    ]
    workers: int
    slots: Annotated[int, Field(description="The number of attempts that these workers can run at once.")]


ROUTES = """
with work as (
    select n.queue, count(*) filter (where e.status = 'requested') as requested,
        count(*) filter (where e.status = 'scheduled') as ready,
        count(*) filter (where e.status in ('running', 'canceling')) as running,
        extract(epoch from clock_timestamp()
            - min(coalesce(e.since, e.ready_at)) filter (where e.status = 'scheduled'))::float8 as oldest
    from live l join execution e on e.id = l.execution_id join namespace n on n.id = e.namespace_id
    where n.kind = 'action' group by n.queue
), crew as (
    select 'work.' || r as queue, count(*) as workers, sum(p.concurrency)::integer as slots
    from process p cross join unnest(p.routes) r
    where p.kind = 'worker' and p.state = 'active' and p.beat_at > clock_timestamp() - make_interval(secs => $1)
    group by r
)
select queue, coalesce(requested, 0) as requested, coalesce(ready, 0) as ready, coalesce(running, 0) as running, oldest,
    coalesce(workers, 0) as workers, coalesce(slots, 0) as slots
from work full join crew using (queue) order by coalesce(ready, 0) desc, queue
"""


async def routes(session: Session, stale: float) -> list[RouteWork]:
    """Return every route with work, or with a worker with a heartbeat within `stale` seconds, the fullest first."""
    return rows_as(RouteWork, await session.fetch(ROUTES, stale))


@dataclass(frozen=True, slots=True)
class WaitingLine:
    """The executions that wait for the same key of a limit, or for workers, and the taken slots of that key."""

    gate: Annotated[
        str,
        Field(
            description="The cause of the wait. `limit`: the limit has no free slot. `worker`: there is no live worker that can "
            "run executions of `namespace`. `regroup`: a changed limit is being applied."
        ),
    ]
    limit: Annotated[
        str | None, Field(description="The limit; null if the executions do not wait for a limit.")
    ]
    group_value: Annotated[
        str | None,
        Field(
            description="The values of the parameters in `by`, as text; null if the executions do not wait for a limit."
        ),
    ]
    max: int | None
    by: Annotated[
        list[str] | None,
        Field(
            description="The parameters and labels by which the limit counts slots; null if they do not wait for "
            "a limit."
        ),
    ]
    rate_count: int | None
    rate_seconds: float | None
    namespace: Annotated[
        str | None, Field(description="The namespace of the executions if they wait for a worker; else null.")
    ]
    held: int
    longest: Annotated[
        float | None,
        Field(description="The seconds for which the oldest holder has had its slot; null: none is taken."),
    ]
    waiting: Annotated[int, Field(description="The number of executions that wait.")]
    oldest: Annotated[
        float | None,
        Field(
            description="The seconds since the first execution of the queue became ready; null: none waits."
        ),
    ]
    per_minute: Annotated[
        float | None,
        Field(
            description="The average number of executions that were admitted per minute since the queue was last "
            "empty; null: none waits."
        ),
    ]


LINES = """
with held as (
    select limit_id, group_value, count(*) as held, extract(epoch from clock_timestamp() - min(admitted_at))::float8 as longest
    from slot group by limit_id, group_value
), standing as (
    select l.gate_kind, l.gate_limit as limit_id, l.gate_group as group_value,
        case when l.gate_kind = 'worker' then l.namespace_id end as namespace_id, sum(w.n)::bigint as waiting,
        extract(epoch from clock_timestamp() - min(l.ready_at))::float8 as oldest,
        sum(l.admitted)::float8 * 60 / greatest(extract(epoch from clock_timestamp() - min(l.began_at))::float8, 1) as per_minute
    from lane l cross join lateral (select count(*) as n from waiter where waiter.lane = l.id) w
    group by 1, 2, 3, 4
)
select coalesce(s.gate_kind, 'limit') as gate, c.ref as limit, coalesce(h.group_value, s.group_value) as group_value,
    nullif(c.max, 2147483647) as max, c.by, c.rate_count, c.rate_seconds, n.name as namespace,
    coalesce(held, 0) as held, longest, coalesce(waiting, 0) as waiting, oldest, per_minute
from held h full join standing s on s.limit_id = h.limit_id and s.group_value = h.group_value
left join concurrency_limit c on c.id = coalesce(h.limit_id, s.limit_id)
left join namespace n on n.id = s.namespace_id
order by coalesce(waiting, 0) desc, coalesce(held, 0) desc, gate, c.id, 3, n.id limit $1
"""


async def lines(session: Session, limit: int) -> list[WaitingLine]:
    """Return at most `limit` keys that are held or waited for, the longest lines first."""
    return rows_as(WaitingLine, await session.fetch(LINES, limit))
