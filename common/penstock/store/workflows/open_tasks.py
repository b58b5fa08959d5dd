"""The state of an unfinished run of a workflow: its stop or pause, and its open tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from penstock.store.session.database import Session
from penstock.store.session.rows import first_as, rows_as


@dataclass(frozen=True, slots=True)
class WorkflowHead:
    """The head of a workflow's state (JSON). If the workflow is stopping, the status that it will end with, and the
    reason."""

    head: str | None
    stop_status: str | None
    stop_reason: str | None


HEAD = "select head::text as head, stop_status, stop_reason from workflow where execution_id = $1"


async def head(session: Session, workflow: UUID) -> WorkflowHead | None:
    return first_as(WorkflowHead, await session.fetch(HEAD, workflow))


@dataclass(frozen=True, slots=True)
class OpenTask:
    """The executions of one task in one status: their number, and the `first` of them."""

    task: str
    status: str
    count: int
    first: UUID


OPEN = """
select e.task, e.status, count(*) as count, (array_agg(e.id order by e.ready_at, e.id))[1] as first
from execution e where e.parent = $1 and e.finished_at is null group by e.task, e.status order by min(e.created_at), 2
"""


async def listed(session: Session, workflow: UUID) -> list[OpenTask]:
    """Return the tasks with open executions, by status, in the order in which they began."""
    return rows_as(OpenTask, await session.fetch(OPEN, workflow))


OPEN_IDS = "select id from execution where parent = $1 and finished_at is null limit $2"


async def open_ids(session: Session, workflow: UUID, limit: int) -> list[UUID]:
    """Return at most `limit` open executions of a workflow's tasks."""
    return [UUID(int=row["id"].int) for row in await session.fetch(OPEN_IDS, workflow, limit)]


MOST_URGENT = """
with recursive tree as (
    select e.id, e.status, e.namespace_id, e.ready_at, array[e.id] as path from execution e
    where e.parent = $1 and e.finished_at is null and ($2::uuid[] is null or e.id = any ($2))
    union all
    select e.id, e.status, e.namespace_id, e.ready_at, t.path || e.id from tree t join execution e on e.parent = t.id
    where e.finished_at is null and cardinality(t.path) < $4
), inside as (
    select * from tree limit 10000
)
select i.path from inside i join namespace n on n.id = i.namespace_id
where not exists (select from execution c where c.parent = i.id and c.finished_at is null)
-- A running workflow without an open task waits for an executor, so it ranks as a requested execution.
order by
    array_position($3::text[], case when i.status = 'running' and n.kind = 'workflow' then 'requested' else i.status end),
    i.ready_at, i.id
limit 1
"""


async def most_urgent(
    session: Session, id: UUID, children: Sequence[UUID] | None, statuses: Sequence[str], depth: int
) -> list[UUID]:
    """Return the path from an execution to the most urgent open execution inside it that has no open execution inside
    itself. Of several, take the first in the order of `statuses`, and of these the oldest.

    The path leaves out the execution `id`. The path begins with one of `children` (None: any), and has at most `depth`
    steps. It is empty if nothing is open. At most 10,000 executions are compared."""
    rows = await session.fetch(MOST_URGENT, id, children, list(statuses), depth)
    return [UUID(int=step.int) for step in rows[0]["path"]] if rows else []


STATUSES = """
select task, record ->> 'status' as status from workflow_task where execution_id = $1
union all
select x.key::integer, x.value ->> 'status' from archive a cross join jsonb_each(a.state -> 'tasks') x where a.id = $1
"""


async def statuses(session: Session, workflow: UUID) -> dict[int, str | None]:
    """Return the statuses of the tasks of a workflow by their index in the graph. A task without a record is absent."""
    return {row["task"]: row["status"] for row in await session.fetch(STATUSES, workflow)}


@dataclass(frozen=True, slots=True)
class Pause:
    """The user that paused a workflow, and the reason."""

    by: str
    reason: str | None


PAUSE = """
select by, reason from workflow_command
where execution_id = $1 and kind = 'pause' and obeyed_at is not null and error is null order by id desc limit 1
"""


async def last_pause(session: Session, workflow: UUID) -> Pause | None:
    """Return the last pause that a workflow obeyed; None for none."""
    return first_as(Pause, await session.fetch(PAUSE, workflow))


PAUSED_FIRST = """
with recursive around as (
    select e.id, e.parent, 0 as depth from execution e where e.id = $1
    union all
    select e.id, e.parent, a.depth + 1 from around a join execution e on e.id = a.parent
    where exists (select from paused_workflow k where k.execution_id = e.id)
        and (select c.by from workflow_command c
             where c.execution_id = a.id and c.kind = 'pause' and c.obeyed_at is not null and c.error is null
             order by c.id desc limit 1) = 'the workflow around it'
)
select id from around order by depth desc limit 1
"""


async def paused_first(session: Session, workflow: UUID) -> UUID:
    """Return the workflow that was paused by a command: this paused workflow, or the workflow around it, if that
    pause reached it. The resume of the returned workflow reaches this workflow, too."""
    rows = await session.fetch(PAUSED_FIRST, workflow)
    return rows[0]["id"] if rows else workflow


CHILD = """
select id from execution where parent = $1 and task = $2 order by finished_at is not null, ready_at, id limit 1
"""
ARCHIVED_CHILD = """
select id from archive where parent = $1 and task = $2 and root = (select root from archive where id = $1 limit 1)
order by created_at, id limit 1
"""


async def child(session: Session, workflow: UUID, task: str) -> UUID | None:
    """Return an open execution of a task, or one that has ended or is archived; None if the task has none."""
    rows = await session.fetch(CHILD, workflow, task) or await session.fetch(ARCHIVED_CHILD, workflow, task)
    return rows[0]["id"] if rows else None
