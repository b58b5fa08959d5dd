"""The waits of an execution other than in line: for an instant, a message, a worker, an answer, an event."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from penstock.store.session.database import Session
from penstock.store.session.rows import first_as


@dataclass(frozen=True, slots=True)
class ReadyTimer:
    """The instant at which an execution becomes ready, and the seconds until then."""

    seconds: float
    due_at: datetime


TIMER = """
select extract(epoch from due_at - clock_timestamp())::float8 as seconds, due_at from timer
where execution_id = $1 and kind = 'ready' order by due_at limit 1
"""


async def timer(session: Session, execution: UUID) -> ReadyTimer | None:
    return first_as(ReadyTimer, await session.fetch(TIMER, execution))


@dataclass(frozen=True, slots=True)
class StartBurst:
    """The open burst of an execution. The burst has had `starts` since `first_at`, and closes at `latest` in any case
    (None: without `at_most`). `keep` tells which start gives the parameters."""

    starts: int
    first_at: datetime
    latest: datetime | None
    keep: str


START_BURST = """
select b.starts, b.first_at, b.first_at + make_interval(secs => (p.options #>> '{debounce,at_most}')::float8) as latest,
    p.options #>> '{debounce,keep}' as keep
from execution e join payload p on p.execution_id = e.id
join start_burst b on b.namespace_id = e.namespace_id and b.key = coalesce(p.options #>> '{debounce,key}', '')
where e.id = $1 and b.execution_id = e.id and b.closes_at = e.not_before and b.closes_at > clock_timestamp()
"""


async def start_burst(session: Session, execution: UUID) -> StartBurst | None:
    """Return the open burst of starts that the execution is of, or None."""
    return first_as(StartBurst, await session.fetch(START_BURST, execution))


@dataclass(frozen=True, slots=True)
class WaitingMessage:
    """A message about the execution, in the outbox: `age` seconds old, and to be published in `due` seconds."""

    id: int
    tries: int
    error: str | None
    age: float
    due: float


MESSAGE = """
select id, tries, error, extract(epoch from clock_timestamp() - created_at)::float8 as age,
    extract(epoch from due_at - clock_timestamp())::float8 as due
from outbox where queue = $1 and $2::uuid = any (ids) order by id desc limit 1
"""


async def message(session: Session, queue: str, execution: UUID) -> WaitingMessage | None:
    """Return the newest message about the execution for this queue; None if the outbox has none."""
    return first_as(WaitingMessage, await session.fetch(MESSAGE, queue, execution))


@dataclass(frozen=True, slots=True)
class Parked:
    """The reason why an execution is parked. `offered`: a worker was offered it and could not take it, since it lacks
    the action, or its task executor `executor` had no room. `worker` is the name, None if that worker has left. Not
    `offered`: some workers of its route lack the action."""

    offered: bool
    worker: str | None
    executor: str | None
    seconds: float


PARKED = """
select k.worker is not null as offered, p.name as worker, k.executor,
    extract(epoch from clock_timestamp() - k.at)::float8 as seconds
from parked k left join process p on p.id = k.worker and p.state <> 'dead'
where k.execution_id = $1 and k.queue = $2
"""


async def parked(session: Session, queue: str, execution: UUID) -> Parked | None:
    """Return the reason why an execution is parked; None if it is on its route."""
    return first_as(Parked, await session.fetch(PARKED, execution, queue))


@dataclass(frozen=True, slots=True)
class AheadOnRoute:
    """The scheduled executions of a queue that come before an execution: those of `higher` priority, the `older` ones of its
    priority and its tenant, and those of its priority and other tenants that have earlier `turns`."""

    higher: int
    older: int
    turns: int

    @property
    def count(self) -> int:
        return self.higher + self.older + self.turns


AHEAD_ON_ROUTE = """
with waiting as materialized (
    select e.id, e.priority, split_part(n.name, '::', 1) as tenant, coalesce(b.root_at, e.ready_at) as root_at, e.ready_at
    from live l join execution e on e.id = l.execution_id join namespace n on n.id = e.namespace_id
    left join backlog b on b.execution_id = e.id
    where e.status = 'scheduled' and n.queue = $1
), mine as (
    select w.*, coalesce(t.tenant, '') as last from waiting w
    left join tenant_turn t on t.queue = $1 and t.rank = -w.priority
    where w.id = $2
), level as (
    select w.tenant, count(*) as waits, w.tenant = m.tenant as own,
        count(*) filter (where (w.root_at, w.ready_at, w.id) < (m.root_at, m.ready_at, m.id)) as before,
        (w.tenant <= m.last, w.tenant) < (m.tenant <= m.last, m.tenant) as comes_first
    from waiting w join mine m on m.priority = w.priority group by w.tenant, m.tenant, m.last
), older as (
    select coalesce(sum(before) filter (where own), 0) as count from level
)
select (select count(*) from waiting w join mine m on w.priority > m.priority)::integer as higher, o.count::integer as older,
    -- A tenant has a turn in each round. An execution waits for as many rounds as its tenant has older executions, and in its
    -- own round for the tenants that have their turn earlier.
    (select coalesce(sum(least(waits, o.count + comes_first::integer)), 0) from level where not own)::integer as turns
from older o
"""


async def ahead_on_route(session: Session, queue: str, execution: UUID) -> AheadOnRoute:
    """Return the scheduled executions on the queue that come before this one."""
    [row] = await session.fetch(AHEAD_ON_ROUTE, queue, execution)
    return AheadOnRoute(row["higher"], row["older"], row["turns"])


PAUSED = "select from paused_workflow where execution_id = $1"


async def is_paused(session: Session, workflow: UUID) -> bool:
    """Return True if this run of a workflow is paused."""
    return bool(await session.fetch(PAUSED, workflow))


@dataclass(frozen=True, slots=True)
class ClaimHolder:
    """The worker that has claimed an execution, for `seconds`. Its last heartbeat was `silent` seconds ago. `name`
    and `state` are None if the worker has left. `size` and `within` (seconds) are those of the batch of its action, or None."""

    worker: UUID
    name: str | None
    state: str | None
    seconds: float
    silent: float | None
    size: int | None = None
    within: float | None = None


HOLDER = """
select c.worker, p.name, p.state, extract(epoch from clock_timestamp() - c.claimed_at)::float8 as seconds,
    extract(epoch from clock_timestamp() - greatest(p.beat_at, p.started_at))::float8 as silent,
    (d.body -> 'batch' ->> 'size')::integer as size, (d.body -> 'batch' ->> 'within')::float8 as within
from claim c left join process p on p.id = c.worker
join execution e on e.id = $2 left join definition d on d.id = e.definition_id
where c.worker = $1 and $2::uuid = any (c.executions) order by c.claimed_at desc limit 1
"""


async def holder(session: Session, claim: UUID | None, execution: UUID) -> ClaimHolder | None:
    """Return the worker `claim`, if it has claimed the execution."""
    return first_as(ClaimHolder, await session.fetch(HOLDER, claim, execution))


@dataclass(frozen=True, slots=True)
class AwaitedChild:
    """An execution `child` that has not begun, and the running attempt of `parent` that started it and waits for its result.
    `on_same_worker`: the worker of that attempt could run the child."""

    parent: UUID
    parent_action: str
    child: UUID
    on_same_worker: bool


AWAITED_CHILD = """
select f.parent, d.ref as parent_action, e.id as child,
    coalesce(substr(n.queue, 6) = any (p.routes) and n.action = any (p.actions), false) as on_same_worker
from effect f join execution r on r.id = f.parent join definition d on d.id = r.definition_id
join execution e on e.id = f.id join namespace n on n.id = e.namespace_id
left join process p on p.id = r.claim
where f.parent = $1 and f.kind = 'execution' and ($2::uuid is null or f.id = $2) and r.status = 'running'
    and e.status in ('requested', 'queued', 'scheduled') and exists (select from awaited a where a.execution_id = e.id)
order by e.id limit 1
"""


async def awaited_child(session: Session, parent: UUID, child: UUID | None = None) -> AwaitedChild | None:
    """Return the oldest child that the attempt of `parent` waits for and that has not begun. With `child`, return this one or
    None."""
    return first_as(AwaitedChild, await session.fetch(AWAITED_CHILD, parent, child))


@dataclass(frozen=True, slots=True)
class OpenInquiry:
    """An open inquiry that was asked `asked` seconds ago, and expires in `remaining` seconds (None: never)."""

    prompt: str
    assignee: str | None
    due_at: datetime | None
    asked: float
    remaining: float | None


INQUIRY = """
select prompt, assignee, due_at, extract(epoch from clock_timestamp() - created_at)::float8 as asked,
    extract(epoch from due_at - clock_timestamp())::float8 as remaining
from inquiry where execution_id = $1 and status = 'created'
"""


async def inquiry(session: Session, execution: UUID) -> OpenInquiry | None:
    """Return the inquiry that an execution waits for; None if it was answered."""
    return first_as(OpenInquiry, await session.fetch(INQUIRY, execution))


@dataclass(frozen=True, slots=True)
class AwaitedEvent:
    """The event that an execution has waited for, for `seconds`; its timeout is in `remaining` seconds (None: never).
    `params` are the stored parameters of the wait (JSON), and `starter` the action or workflow that waits."""

    trigger: str
    tenant: str
    params: str
    starter: str | None
    seconds: float
    remaining: float | None


EVENT = """
select w.trigger, w.tenant, p.params::text as params, d.ref as starter,
    extract(epoch from clock_timestamp() - w.since)::float8 as seconds,
    (select extract(epoch from t.due_at - clock_timestamp())::float8 from timer t
     where t.execution_id = w.execution_id and t.kind = 'total' order by t.due_at limit 1) as remaining
from event_wait w join payload p on p.execution_id = w.execution_id
join execution e on e.id = w.execution_id
left join execution s on s.id = e.parent
left join definition d on d.id = s.definition_id
where w.execution_id = $1
"""


async def event(session: Session, execution: UUID) -> AwaitedEvent | None:
    """Return the event that an execution waits for; None if the event has come."""
    return first_as(AwaitedEvent, await session.fetch(EVENT, execution))


@dataclass(slots=True)
class Suspended:
    """The waits of a durable function, which is suspended since `seconds`: open `children` (step, status, id),
    `signals` by name, an instant in `remaining` seconds. `kept` are limits of which the function keeps a slot while one
    of its children waits for a slot of the same limit."""

    seconds: float
    remaining: float | None
    children: list[tuple[str, str, UUID]]
    signals: list[str]
    kept: list[str]


SUSPENDED = """
select extract(epoch from clock_timestamp() - s.since)::float8 as seconds,
    extract(epoch from s.until - clock_timestamp())::float8 as remaining,
    array(select (c.task, c.status, c.id) from execution c where c.id = any (s.children) order by c.id limit $2) as children,
    array(select substr(g ->> 0, 8) from jsonb_array_elements(s.signals) g) as signals,
    array(select distinct l.ref from execution e cross join unnest(e.keys) k join concurrency_limit l on l.id = k.limit_id
        where e.id = s.execution_id and l.while_waiting = 'keep' and exists (
            select from execution c cross join unnest(c.keys) o where c.id = any (s.children) and c.status = 'queued' and o = k)
    ) as kept
from suspended s where s.execution_id = $1
"""


async def suspended(session: Session, execution: UUID, children: int = 5) -> Suspended | None:
    """Return the waits of a suspended durable function, with at most so many of its children."""
    return first_as(Suspended, await session.fetch(SUSPENDED, execution, children))
