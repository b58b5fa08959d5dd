"""The waits inside listed executions: what an execution waits for while nothing in it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from penstock.store.session.database import Session, Transaction
from penstock.store.session.rows import rows_as

MAX_CHILDREN = 500
"""The maximum number of children of one execution that are read, ended ones included. An execution with more children
gets no wait."""
MAX_INSIDE = 10_000
"""The maximum number of open executions that are compared for one list. In a larger list, no execution gets a wait."""
DEEPEST = 10


@dataclass(frozen=True, slots=True)
class InnerWait:
    """An execution that waits inside `root`, or `root` itself. The execution waits for an answer (`prompt`,
    `assignee`), a signal, an event (`trigger`), an outside system, or until `due_at`. `params` are the stored parameters of
    the wait for an event (JSON), and `starter` is the action or workflow that waits. `inside` is the number of such
    executions. `is_paused`: `root` is a paused workflow. `stopped` is `paused` if `execution_id` is a paused workflow that
    starts its tasks when it is resumed, and `held` if a hold covers the execution."""

    root: UUID
    execution_id: UUID
    inside: int
    prompt: str | None
    assignee: str | None
    signals: list[str]
    trigger: str | None
    params: str | None
    starter: str | None
    is_outside: bool
    outside_name: str | None
    due_at: datetime | None
    is_paused: bool
    stopped: Literal["paused", "held"] | None


WAITS = """
with recursive tree as (
    select e.id as root, e.id, null::uuid as parent, e.status, e.not_before, e.ready_at, 0 as depth, 0::bigint as number
    from execution e where e.id = any ($1::uuid[])
    union all
    select t.root, c.id, t.id, c.status, c.not_before, c.ready_at, t.depth + 1, c.number
    from tree t cross join lateral (
        select b.*, count(*) over () as number from (
            -- The index of a workflow's children contains ended ones too, so the number of children is bounded before the open
            -- ones are selected.
            (select x.* from execution x where t.status = 'running' and x.parent = t.id limit $2)
            union all
            -- A suspended function waits for all of its open children.
            (select x.* from suspended s join execution x on x.id = any (s.children)
             where t.status = 'waiting' and s.execution_id = t.id limit $2)
        ) b
    ) c
    where c.finished_at is null and t.depth < $4
), inside as (
    select * from tree limit $3
), leaf as (
    select i.*, h.stopped, h.stopped is not null or i.status = 'waiting'
        or i.status = 'requested' and i.not_before > clock_timestamp() as waits
    from inside i cross join lateral (
        select case
            -- A paused workflow without an open task, or a task that the pause keeps.
            when i.status in ('running', 'requested') and exists (select from paused_workflow k
                where k.execution_id = case when i.status = 'running' then i.id
                    else coalesce(i.parent, (select x.parent from execution x where x.id = i.id)) end) then 'paused'
            when i.status = 'requested' and i.not_before = held_until() then 'held'
        end as stopped
    ) h where not exists (select from inside c where c.parent = i.id)
), quiet as (
    select l.root, count(*) filter (where l.stopped is distinct from 'paused')::integer as inside from leaf l group by l.root
    having bool_and(l.waits) and (select count(*) from inside) < $3
        and not exists (select from inside i where i.root = l.root and i.number >= $2)
)
select q.root, case when l.stopped = 'paused' and l.status = 'requested' then coalesce(l.parent, l.id)
    else l.id end as execution_id, q.inside,
    i.prompt, i.assignee,
    coalesce(array(select substr(g ->> 0, 8) from jsonb_array_elements(s.signals) g), '{}') as signals,
    w.trigger, case when w.trigger is not null then (select p.params::text from payload p where p.execution_id = l.id) end
        as params,
    case when w.trigger is not null then (select d.ref from execution w join execution s on s.id = w.parent
        join definition d on d.id = s.definition_id where w.id = l.id) end as starter,
    o.execution_id is not null as is_outside, o.name as outside_name,
    case when l.stopped is not null then null when l.status = 'requested' then l.not_before
        else coalesce(i.due_at, s.until, o.due_at,
        (select min(t.due_at) from timer t
         where w.trigger is not null and t.execution_id = l.id and t.kind = 'total')) end as due_at,
    exists (select from paused_workflow k where k.execution_id = q.root) as is_paused,
    l.stopped
from quiet q join lateral (
    select * from leaf l where l.root = q.root
    order by not exists (select from inquiry i where i.execution_id = l.id and i.status = 'created'),
        coalesce(l.stopped = 'paused', false), l.ready_at, l.id limit 1
) l on true
left join inquiry i on i.execution_id = l.id and i.status = 'created'
left join suspended s on s.execution_id = l.id
left join event_wait w on w.execution_id = l.id
left join outside_wait o on o.execution_id = l.id and o.settled_at is null
where l.status = 'requested' or i.execution_id is not null or w.execution_id is not null or o.execution_id is not null
    or s.execution_id is not null and s.children = '{}' or l.stopped is not null
"""


async def of_listed(session: Session | Transaction, ids: Sequence[UUID]) -> list[InnerWait]:
    """Return one wait for each of these executions in which nothing runs and nothing is about to start. An open inquiry comes
    first, then the oldest wait, and last a pause."""
    return rows_as(InnerWait, await session.fetch(WAITS, list(ids), MAX_CHILDREN, MAX_INSIDE, DEEPEST))


@dataclass(frozen=True, slots=True)
class StartWait:
    """A queued or scheduled execution, which waits for a slot of `limit` or for a worker of `route`. `is_online`: a live worker
    serves the route and has the action. `gate` is what keeps a queued execution (None: nothing does any more)."""

    id: UUID
    gate: Literal["limit", "worker", "regroup"] | None
    limit: str | None
    route: str
    is_online: bool


STARTS = """
select e.id, case when w.gate_limit is not null and c.id is null then 'regroup' else w.gate_kind end as gate, c.ref as limit,
    substr(n.queue, 6) as route, exists (
    select from process p where p.kind = 'worker' and p.state = 'active' and substr(n.queue, 6) = any (p.routes)
        and n.action = any (p.actions) and p.beat_at > clock_timestamp() - make_interval(secs => $2)) as is_online
from unnest($1::uuid[]) x cross join lateral (select * from execution e where e.id = x offset 0) e
join namespace n on n.id = e.namespace_id
left join lateral (
    select l.gate_kind, l.gate_limit from waiter w join lane l on l.id = w.lane where w.execution_id = e.id limit 1
) w on true
left join concurrency_limit c on c.id = w.gate_limit and c.id <> all ((select regrouping_limits())::integer[])
where e.status in ('queued', 'scheduled')
"""


async def starts_of(session: Session | Transaction, ids: Sequence[UUID], stale: float) -> list[StartWait]:
    """Return what these executions wait for before they start, of those that are queued or scheduled. A worker is live with a
    heartbeat within `stale` seconds."""
    return rows_as(StartWait, await session.fetch(STARTS, list(ids), stale))


PAUSED = "select execution_id from paused_workflow where execution_id = any ($1::uuid[])"


async def paused_among(session: Session | Transaction, ids: Sequence[UUID]) -> set[UUID]:
    """Return the paused workflows among these executions."""
    return {row["execution_id"] for row in await session.fetch(PAUSED, list(ids))}
