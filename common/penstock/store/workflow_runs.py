"""What is stored of a workflow's run besides its own execution: its tasks, and what people told it. In the hot tables or,
once it was archived, there."""

from __future__ import annotations

from uuid import UUID

from penstock.store.database import Row, Session

TASKS = """
select e.task, n.action, e.status, count(*) as count, (array_agg(e.id order by e.item))[1] as first,
    min(e.created_at) as begun, max(e.finished_at) as ended
from execution e join namespace n on n.id = e.namespace_id where e.parent = $1 group by 1, 2, 3
union all
select task, action, status, count(*), (array_agg(id order by item))[1], min(created_at), max(finished_at)
from archive where parent = $1 and root = (select root from archive where id = $1 limit 1) group by 1, 2, 3
order by begun, ended
"""


async def tasks(session: Session, id: UUID) -> list[Row]:
    """The executions of its tasks, those of one task that are in the same status as one row."""
    return await session.fetch(TASKS, id)


RECORDS = """
select task, record ->> 'status' as status, coalesce((record ->> 'given')::boolean, false) as given,
    (record #>> '{fan,total}')::integer as items
from workflow_task where execution_id = $1
union all
select x.key::integer, x.value ->> 'status', coalesce((x.value ->> 'given')::boolean, false),
    (x.value #>> '{fan,total}')::integer
from archive a cross join jsonb_each(a.state -> 'tasks') x where a.id = $1
"""


async def records(session: Session, id: UUID) -> dict[int, Row]:
    """How its tasks stand, by their index in the graph: status (none: pending), whether the executor itself gave the
    result, how many items there are. Tasks of which nothing is known yet are not in it."""
    return {row["task"]: row for row in await session.fetch(RECORDS, id)}


COMMANDS = """
select kind, task, value::text as value, by, reason, created_at, obeyed_at, error
from workflow_command where execution_id = $1 order by id
"""


async def commands(session: Session, id: UUID) -> list[Row]:
    """What people told it, in order, and what became of that."""
    return await session.fetch(COMMANDS, id)


PAUSED = "select from paused_workflow where execution_id = $1"


async def is_paused(session: Session, id: UUID) -> bool:
    return bool(await session.fetch(PAUSED, id))
