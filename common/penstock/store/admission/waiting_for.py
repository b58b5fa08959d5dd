"""The waits of an execution outside of lines before limits: an instant, a message, a worker, an answer, an event."""

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
class WaitingMessage:
    """A message about it that is in the outbox, for `age` seconds, and to be taken in `due` seconds."""

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
    """The newest one for this queue."""
    return first_as(WaitingMessage, await session.fetch(MESSAGE, queue, execution))


@dataclass(frozen=True, slots=True)
class Parked:
    """A worker was offered it and could not take it: it lacks the action, or `executor`, its task executor, had no room.
    `worker` is None if that one has left. Or it was not `offered` to any, since some of its route lack the action."""

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
    """None if it is on its way on its route."""
    return first_as(Parked, await session.fetch(PARKED, execution, queue))


AHEAD_ON_ROUTE = """
select count(*) as count from live l join execution e on e.id = l.execution_id join namespace n on n.id = e.namespace_id
where e.status = 'scheduled' and n.queue = $1 and (e.ready_at, e.id) < ($2, $3)
"""


async def ahead_on_route(session: Session, queue: str, ready_at: datetime | None, execution: UUID) -> int:
    """Return the number of scheduled executions of its queue that were ready before it."""
    return int((await session.fetch(AHEAD_ON_ROUTE, queue, ready_at, execution))[0]["count"])


PAUSED = "select from paused_workflow where execution_id = $1"


async def is_paused(session: Session, workflow: UUID) -> bool:
    """Return whether this run of a workflow is paused."""
    return bool(await session.fetch(PAUSED, workflow))


@dataclass(frozen=True, slots=True)
class ClaimHolder:
    """The worker that has it (`name` and `state` are None if that one has left), for so many `seconds`, last heard of
    `silent` seconds ago."""

    worker: UUID
    name: str | None
    state: str | None
    seconds: float
    silent: float | None


HOLDER = """
select c.worker, p.name, p.state, extract(epoch from clock_timestamp() - c.claimed_at)::float8 as seconds,
    extract(epoch from clock_timestamp() - greatest(p.beat_at, p.started_at))::float8 as silent
from claim c left join process p on p.id = c.worker
where c.worker = $1 and $2::uuid = any (c.executions) order by c.claimed_at desc limit 1
"""


async def holder(session: Session, claim: UUID | None, execution: UUID) -> ClaimHolder | None:
    """The worker that has claimed it."""
    return first_as(ClaimHolder, await session.fetch(HOLDER, claim, execution))


@dataclass(frozen=True, slots=True)
class OpenInquiry:
    """An open inquiry, `asked` so many seconds ago, with so many seconds `left` (None: any time)."""

    prompt: str
    assignee: str | None
    due_at: datetime | None
    asked: float
    left: float | None


INQUIRY = """
select prompt, assignee, due_at, extract(epoch from clock_timestamp() - created_at)::float8 as asked,
    extract(epoch from due_at - clock_timestamp())::float8 as left
from inquiry where execution_id = $1 and status = 'created'
"""


async def inquiry(session: Session, execution: UUID) -> OpenInquiry | None:
    """Return the inquiry that an execution waits for; None if it has its answer."""
    return first_as(OpenInquiry, await session.fetch(INQUIRY, execution))


@dataclass(frozen=True, slots=True)
class AwaitedEvent:
    """The event that it waits for, since so many `seconds`, with so many seconds `left` (None: any time)."""

    trigger: str
    filter: str | None
    seconds: float
    left: float | None


EVENT = """
select w.trigger, p.params ->> 'filter' as filter, extract(epoch from clock_timestamp() - w.since)::float8 as seconds,
    (select extract(epoch from t.due_at - clock_timestamp())::float8 from timer t
     where t.execution_id = w.execution_id and t.kind = 'total' order by t.due_at limit 1) as left
from event_wait w join payload p on p.execution_id = w.execution_id where w.execution_id = $1
"""


async def event(session: Session, execution: UUID) -> AwaitedEvent | None:
    """None if it has come."""
    return first_as(AwaitedEvent, await session.fetch(EVENT, execution))


@dataclass(slots=True)
class Suspended:
    """The waits of a durable function: `children` that are open (step, status, id), `signals` by name, an instant in `left`
    seconds. `seconds`: since when. `kept`: limits of which it keeps a slot while a child of it is in line for the same
    limit."""

    seconds: float
    left: float | None
    children: list[tuple[str, str, UUID]]
    signals: list[str]
    kept: list[str]


SUSPENDED = """
select extract(epoch from clock_timestamp() - s.since)::float8 as seconds,
    extract(epoch from s.until - clock_timestamp())::float8 as left,
    array(select (c.task, c.status, c.id) from execution c where c.id = any (s.children) order by c.id limit 5) as children,
    array(select substr(g ->> 0, 8) from jsonb_array_elements(s.signals) g) as signals,
    array(select distinct l.ref from execution e cross join unnest(e.keys) k join concurrency_limit l on l.id = k.limit_id
        where e.id = s.execution_id and l.while_waiting = 'keep' and exists (
            select from execution c cross join unnest(c.keys) o where c.id = any (s.children) and c.status = 'queued' and o = k)
    ) as kept
from suspended s where s.execution_id = $1
"""


async def suspended(session: Session, execution: UUID) -> Suspended | None:
    """Return the waits of a suspended durable function, with five of its children at most."""
    return first_as(Suspended, await session.fetch(SUSPENDED, execution))
