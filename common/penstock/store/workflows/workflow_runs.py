"""The rows of a workflow's run besides its own execution: its tasks, and the commands of users. The rows are read from
the hot tables or, once the run was archived, from the archive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson

from penstock.language.moves import FINAL
from penstock.language.workflows.progress import SentCommand, StoredTask, TaskExecutions
from penstock.language.workflows.skip_reason import SkippedTask
from penstock.store.executions.executions import Execution
from penstock.store.session.database import Session, Transaction
from penstock.store.session.rows import rows_as

MAX_OPEN = 100
"""The maximum number of open executions of a task that are listed for each status."""
EXECUTIONS = f"""
select e.task, n.action, e.status, count(*) as count, (array_agg(e.id order by e.item))[1] as first,
    min(e.created_at) as began_at, max(e.finished_at) as ended_at,
    case when e.status <> all($2::text[]) then (array_agg(e.id order by e.item))[1:{MAX_OPEN}] else '{{}}' end as open
from execution e join namespace n on n.id = e.namespace_id where e.parent = $1 group by 1, 2, 3
union all
select task, action, status, count(*), (array_agg(id order by item))[1], min(created_at), max(finished_at), '{{}}'
from archive where parent = $1 and root = (select root from archive where id = $1 limit 1) group by 1, 2, 3
order by began_at, ended_at
"""


async def executions(session: Session, id: UUID) -> list[TaskExecutions]:
    """Return the executions of a run's tasks, grouped by task and status."""
    return [
        TaskExecutions(
            row["task"],
            row["status"],
            row["count"],
            row["first"],
            row["began_at"],
            row["ended_at"],
            [UUID(int=open_id.int) for open_id in row["open"]],
        )
        for row in await session.fetch(EXECUTIONS, id, sorted(FINAL))
    ]


RAN = """
with recursive archived as materialized (
    select id, parent, task, state is not null as is_workflow
    from archive where root = (select root from archive where id = $1 limit 1)
), child as (
    select e.id, e.task, n.kind = 'workflow' as is_workflow
    from execution e join namespace n on n.id = e.namespace_id where e.parent = $1
    union all
    select id, task, is_workflow from archived where parent = $1
), inside as (
    select * from child
    union all
    -- A workflow inside counts by its own tasks: it is running, too, while these are held or paused.
    select c.id, w.task, c.is_workflow from inside w cross join lateral (
        select e.id, n.kind = 'workflow' as is_workflow
        from execution e join namespace n on n.id = e.namespace_id where e.parent = w.id
        union all
        select id, is_workflow from archived where parent = w.id
    ) c where w.is_workflow
), move as (
    select c.task, h.new, h.at,
        coalesce(lead(h.at) over (partition by h.execution_id order by h.at, h.attempt), clock_timestamp()) as upto
    from inside c join history h on h.execution_id = c.id
    where not c.is_workflow and h.at >= $2::timestamptz - interval '1 minute'
        and ($3::timestamptz is null or h.at <= $3 + interval '1 minute')
), busy as (
    select task, range_agg(tstzrange(at, greatest(at, upto))) filter (where new in ('running', 'canceling')) as during
    from move group by grouping sets ((task), ())
)
select task, coalesce((select sum(extract(epoch from upper(r) - lower(r))) from unnest(during) r), 0)::float8 as seconds
from busy
"""


async def ran(session: Session, run: Execution) -> tuple[float, dict[str, float]]:
    """Return the seconds in which at least one action of a run ran, at every depth. Also return them by task. Executions
    without a stored history do not count."""
    seconds = {
        row["task"]: row["seconds"]
        for row in await session.fetch(RAN, run.id, run.created_at, run.finished_at)
    }
    return seconds.pop(None), seconds


TASKS = """
select task, record ->> 'status' as status, coalesce((record ->> 'given')::boolean, false) as has_own_result,
    (record #>> '{fan,total}')::integer as items, coalesce((record #>> '{fan,begun}')::integer, 0) as started_items,
    case when record ->> 'status' = 'skipped' then record::text end as skipped
from workflow_task where execution_id = $1
union all
select x.key::integer, x.value ->> 'status', coalesce((x.value ->> 'given')::boolean, false),
    (x.value #>> '{fan,total}')::integer, coalesce((x.value #>> '{fan,begun}')::integer, 0),
    case when x.value ->> 'status' = 'skipped' then x.value::text end
from archive a cross join jsonb_each(a.state -> 'tasks') x where a.id = $1
"""


async def tasks(session: Session | Transaction, id: UUID) -> dict[int, StoredTask]:
    """Return the states of a run's tasks, by index in the graph. Tasks without a stored state are left out."""
    return {
        row["task"]: StoredTask(
            row["status"],
            row["has_own_result"],
            row["items"],
            row["started_items"],
            None if row["skipped"] is None else skipped_task(orjson.loads(row["skipped"])),
        )
        for row in await session.fetch(TASKS, id)
    }


def skipped_task(record: Mapping[str, Any]) -> SkippedTask:
    """Build the state of a skipped task from its record, in which fields with default values are left out."""
    return SkippedTask(
        record.get("success", 0),
        record.get("failed", 0),
        record.get("skipped", 0),
        dict(record.get("named", ())),
        record.get("given", False),
    )


COMMANDS = """
select kind, task, value::text as value, by, reason, created_at, obeyed_at, error from (
    select kind, task, value, by, reason, created_at, obeyed_at, error, id
    from workflow_command where execution_id = $1
    union all
    -- The answer itself is the result of the task, in which secrets are masked.
    select 'answer', e.task, null, i.responder, null, i.answered_at, i.answered_at, null, null
    from execution e join inquiry i on i.execution_id = e.id
    where (e.parent = $1 or e.id = $1) and i.status = 'responded' and i.responder <> 'its default'
) c order by created_at, id
"""


async def commands(session: Session, id: UUID) -> list[SentCommand]:
    """Return the commands of users to the run and their answers to it and to its tasks, in order, with the outcome of
    each."""
    return [
        SentCommand(
            row["kind"],
            row["task"],
            None if row["value"] is None else orjson.loads(row["value"]),
            row["by"],
            row["reason"],
            row["created_at"],
            row["obeyed_at"],
            row["error"],
        )
        for row in await session.fetch(COMMANDS, id)
    ]


PAUSED = "select from paused_workflow where execution_id = $1"


async def is_paused(session: Session, id: UUID) -> bool:
    return bool(await session.fetch(PAUSED, id))


PAUSED_AROUND = """
with recursive around as (
    select e.id, e.parent, 0 as depth from execution e where e.id = $1
    union all
    select e.id, e.parent, a.depth + 1 from around a join execution e on e.id = a.parent
)
select a.id from around a join paused_workflow p on p.execution_id = a.id order by a.depth limit 1
"""


async def paused_around(session: Session, id: UUID) -> UUID | None:
    """Return the innermost paused workflow among an execution and those around it; None if none is paused."""
    rows = await session.fetch(PAUSED_AROUND, id)
    return UUID(int=rows[0]["id"].int) if rows else None


@dataclass(frozen=True, slots=True)
class ChildExecution:
    """An execution of a task; `item` is -1 if the task has no items."""

    id: UUID
    parent: UUID
    task: str
    item: int


CHILDREN = """
select e.id, e.parent, e.task, e.item from execution e where e.parent = any($1::uuid[])
union all
select a.id, a.parent, a.task, a.item from archive a
where a.parent = any($1::uuid[]) and a.root = any(array(select root from archive where id = any($1::uuid[])))
"""


async def children(session: Session, parents: Sequence[UUID]) -> list[ChildExecution]:
    """Return the executions of the tasks of these runs."""
    return rows_as(ChildExecution, await session.fetch(CHILDREN, list(parents)))
