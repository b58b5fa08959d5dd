"""The queries of `penstock demo` about the executions of its own events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from penstock.store.session.database import Session
from penstock.store.session.rows import first_as, rows_as

UNFINISHED = """
select e.id from execution e join namespace n on n.id = e.namespace_id
where e.finished_at is null and n.action like 'git.%'
"""


async def unfinished(session: Session) -> list[UUID]:
    """Return the executions of the demo's actions that have not ended."""
    return [row["id"] for row in await session.fetch(UNFINISHED)]


ANY_OPEN = "select 1 from execution where id = any($1::uuid[]) and finished_at is null limit 1"


async def any_open(session: Session, ids: Sequence[UUID]) -> bool:
    """Return True if one of these executions has not ended."""
    return bool(await session.fetch(ANY_OPEN, ids))


OURS = """
with roots as (
    select execution_id from enforcement where event_id = any($1::uuid[]) union all select unnest($2::uuid[])
), ours as (
    select * from execution where id in (select * from roots)
    union all
    select * from execution where parent in (select * from roots)
)
"""
ENDED = f"""{OURS}
select n.action, count(*) filter (where o.finished_at is not null) as ended
from ours o join namespace n on n.id = o.namespace_id group by 1
"""


async def ended(session: Session, events: Sequence[UUID]) -> dict[str, int]:
    """Return the number of ended executions of each action that these events have started."""
    return {row["action"]: row["ended"] for row in await session.fetch(ENDED, events, [])}


RESULTS = f"""{OURS}
select n.action, r.result::text as result
from ours o join namespace n on n.id = o.namespace_id join result r on r.execution_id = o.id
left join enforcement f on f.execution_id = o.id
where o.parent is null and o.status = 'completed' order by array_position($1::uuid[], f.event_id)
"""


async def results(session: Session, events: Sequence[UUID]) -> list[tuple[str, str]]:
    """Return the action and the result (JSON) of each completed execution, in the order of the events."""
    return [(row["action"], row["result"]) for row in await session.fetch(RESULTS, events, [])]


@dataclass(frozen=True, slots=True)
class NotCompleted:
    id: UUID
    status: str
    reason: str | None
    action: str


NOT_COMPLETED = f"""{OURS}
select o.id, o.status, o.reason, n.action from ours o join namespace n on n.id = o.namespace_id
where o.status <> 'completed' order by o.id limit 10
"""


async def not_completed(
    session: Session, events: Sequence[UUID], other_ids: Sequence[UUID]
) -> list[NotCompleted]:
    """Return at most ten executions of these events, or among `other_ids`, that did not complete."""
    return rows_as(NotCompleted, await session.fetch(NOT_COMPLETED, events, other_ids))


@dataclass(frozen=True, slots=True)
class ActionFigures:
    """The executions of one action: their number, how many completed, the number of attempts, and their durations."""

    action: str
    ran: int
    completed: int
    tries: int
    p50: timedelta
    p95: timedelta
    began_at: datetime
    ended_at: datetime


FIGURES = f"""{OURS}
select n.action, count(*) as ran, count(*) filter (where o.status = 'completed') as completed,
    sum(greatest(o.attempt, 1)) as tries,
    percentile_cont(0.5) within group (order by o.finished_at - o.created_at) as p50,
    percentile_cont(0.95) within group (order by o.finished_at - o.created_at) as p95,
    min(o.created_at) as began_at, max(o.finished_at) as ended_at
from ours o join namespace n on n.id = o.namespace_id group by 1 order by 2 desc, 1
"""


async def figures(session: Session, events: Sequence[UUID], other_ids: Sequence[UUID]) -> list[ActionFigures]:
    """Return the figures of each action, the most frequent action first."""
    return rows_as(ActionFigures, await session.fetch(FIGURES, events, other_ids))


@dataclass(frozen=True, slots=True)
class Largest:
    execution_id: UUID
    event_id: UUID
    children: int


LARGEST = """
select f.execution_id, f.event_id, count(c.id) as children from enforcement f
left join execution c on c.parent = f.execution_id
where f.event_id = any($1::uuid[]) group by 1, 2 order by 3 desc limit 1
"""


async def largest(session: Session, events: Sequence[UUID]) -> Largest | None:
    """Return the workflow with the most tasks that one of these events has started."""
    return first_as(Largest, await session.fetch(LARGEST, events))


MATCHES = "select count(*) as count from enforcement where event_id = any($1::uuid[])"


async def matches(session: Session, events: Sequence[UUID]) -> int:
    """Return the number of rule matches of these events."""
    return int((await session.fetch(MATCHES, events))[0]["count"])
