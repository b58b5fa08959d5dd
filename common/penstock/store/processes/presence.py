"""The live processes: the executors, and the workers that can run an action of a route."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from penstock.store.session.database import Session
from penstock.store.session.rows import rows_as

EXECUTORS = """
select count(*)::integer as count from process
where kind = 'executor' and state <> 'dead' and beat_at > clock_timestamp() - make_interval(secs => $1)
"""


async def executors(session: Session, stale: float) -> int:
    """Return the number of executors with a heartbeat within `stale` seconds."""
    return int((await session.fetch(EXECUTORS, stale))[0]["count"])


BY_KIND = """
select kind, count(*) as count from process
where state <> 'dead' and beat_at > clock_timestamp() - make_interval(secs => $1) group by kind
"""


async def by_kind(session: Session, stale: float) -> dict[str, int]:
    """Return the number of processes of each kind with a heartbeat within `stale` seconds."""
    return {row["kind"]: row["count"] for row in await session.fetch(BY_KIND, stale)}


@dataclass(frozen=True, slots=True)
class Workers:
    """The numbers of live workers: all, those on a route, and those with an action. Workers with both are `able`, or
    `leaving` if they take no more work. `slots` are those of the able workers, of which `busy` were used at their
    last heartbeats."""

    live: int
    on_route: int
    with_action: int
    leaving: int
    able: int
    slots: int
    busy: int


WORKERS = """
select count(*) as live,
    count(*) filter (where $2 = any (routes)) as on_route,
    count(*) filter (where $3 = any (actions)) as with_action,
    count(*) filter (where fits and state <> 'active') as leaving,
    count(*) filter (where fits and state = 'active') as able,
    coalesce(sum(concurrency) filter (where fits and state = 'active'), 0)::integer as slots,
    coalesce(sum(cardinality(holding)) filter (where fits and state = 'active'), 0)::integer as busy
from (select *, $2 = any (routes) and $3 = any (actions) as fits from process
      where kind = 'worker' and state <> 'dead' and beat_at > clock_timestamp() - make_interval(secs => $1)) p
"""


async def workers(session: Session, stale: float, route: str, action: str) -> Workers:
    """Count the workers of a route and an action with a heartbeat within `stale` seconds."""
    return rows_as(Workers, await session.fetch(WORKERS, stale, route, action))[0]


HELD = """
select unnest(holding) as id from process
where kind = 'worker' and state = 'active' and beat_at > clock_timestamp() - make_interval(secs => $1)
    and $2 = any (routes) and $3 = any (actions)
"""


async def held(session: Session, stale: float, route: str, action: str) -> list[UUID]:
    """Return the executions that the able workers of a route and an action held at their last heartbeats."""
    return [UUID(int=row["id"].int) for row in await session.fetch(HELD, stale, route, action)]


@dataclass(frozen=True, slots=True)
class Unserved:
    """A queue of a route that no live worker serves: the number of executions that wait there, and the labels that
    they require (JSON)."""

    queue: str
    count: int
    labels: str | None


UNSERVED = """
select n.queue, count(*) as count, max(d.body ->> 'labels') as labels
from live l join execution e on e.id = l.execution_id
join namespace n on n.id = e.namespace_id join definition d on d.id = e.definition_id
where e.status = 'scheduled' and n.kind = 'action' and not exists (
    select from process p where p.kind = 'worker' and substr(n.queue, 6) = any(p.routes) and n.action = any(p.actions)
        and p.state = 'active' and p.beat_at > clock_timestamp() - make_interval(secs => $1))
group by n.queue, d.body -> 'labels' order by 2 desc limit 5
"""


async def unserved(session: Session, stale: float) -> Sequence[Unserved]:
    """Return at most five routes and actions with scheduled executions that no live worker serves."""
    return rows_as(Unserved, await session.fetch(UNSERVED, stale))


SERVED = """
select route, count(*) as workers from process, unnest(routes) as route
where kind = 'worker' and state <> 'dead' and beat_at > clock_timestamp() - make_interval(secs => $1)
group by route order by route
"""


async def served_routes(session: Session, stale: float) -> dict[str, int]:
    """Return the routes that live workers serve, with the number of these workers."""
    return {row["route"]: row["workers"] for row in await session.fetch(SERVED, stale)}


@dataclass(frozen=True, slots=True)
class RouteWorkers:
    """The number of workers of a route that take work and have the same actions and labels (JSON)."""

    route: str
    actions: list[str]
    labels: str
    count: int


ALIKE = """
select route, actions, labels::text as labels, count(*) as count from process, unnest(routes) as route
where kind = 'worker' and state = 'active' and beat_at > clock_timestamp() - make_interval(secs => $1)
group by route, actions, process.labels order by route
"""


async def workers_by_route(session: Session, stale: float) -> Sequence[RouteWorkers]:
    """Return the workers with a heartbeat within `stale` seconds, by route; equal workers are counted together."""
    return rows_as(RouteWorkers, await session.fetch(ALIKE, stale))


@dataclass(frozen=True, slots=True)
class OfferingWorker:
    """A live worker, with those of the actions asked for that it offers."""

    name: str
    actions: list[str]


OFFERING = """
select name, array(select unnest(actions) intersect select unnest($2::text[])) as actions from process
where kind = 'worker' and state <> 'dead' and beat_at > clock_timestamp() - make_interval(secs => $1)
    and actions && $2::text[] order by name
"""


async def offering(session: Session, stale: float, actions: Sequence[str]) -> list[OfferingWorker]:
    """Return the workers with a heartbeat within `stale` seconds that offer some of these actions."""
    return rows_as(OfferingWorker, await session.fetch(OFFERING, stale, list(actions)))
