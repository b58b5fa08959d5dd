"""The results that a re-run keeps from the run before, which is open or archived."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from penstock.engine.serialization import load_task_state
from penstock.engine.state import TaskState
from penstock.errors import NotFound
from penstock.store.session.database import Transaction
from penstock.store.session.rows import rows_as

TASKS = """
select task, record::text as record from workflow_task where execution_id = $1
union all
select x.key::integer, x.value::text from archive a cross join jsonb_each(a.state -> 'tasks') x where a.id = $1
"""


IS_STORED = "select exists (select from execution where id = $1) or exists (select from archive where id = $1) as is_stored"


async def read_tasks(tx: Transaction, run: UUID) -> dict[int, TaskState]:
    """Return the states of the tasks of a run that has ended: none if it ended before it began. Raises NotFound if nothing
    is stored of it."""
    tasks = {row["task"]: load_task_state(row["record"]) for row in await tx.fetch(TASKS, run)}
    if not tasks and not (await tx.fetch(IS_STORED, run))[0]["is_stored"]:
        raise NotFound(f"the tasks of run {run} are not stored any more", hint="Run it again as a whole.")
    return tasks


COMPLETED_ITEMS = """
select task, item from execution where parent = $1 and item >= 0 and status = 'completed' and task = any($2::text[])
union all
select task, item from archive
where parent = $1 and root = (select root from archive where id = $1 limit 1)
    and item >= 0 and status = 'completed' and task = any($2::text[])
"""


async def read_completed_items(tx: Transaction, run: UUID, tasks: Sequence[str]) -> list[tuple[str, int]]:
    """Return the items of these tasks that completed in a run: the task's name, and the item's number."""
    return [(row["task"], row["item"]) for row in await tx.fetch(COMPLETED_ITEMS, run, tasks)]


KEPT_ITEMS = """
select task, item from workflow_kept where execution_id = $1 and item >= 0 and task = any($2::integer[]) and error is null
union all
select k.task, k.item
from archive a cross join jsonb_to_recordset(a.state -> 'kept') as k (task integer, item integer, error jsonb)
where a.id = $1 and k.item >= 0 and k.task = any($2::integer[]) and k.error is null
"""


async def read_kept_items(tx: Transaction, run: UUID, tasks: Sequence[int]) -> list[tuple[int, int]]:
    """Return the items of these tasks that a run, itself a re-run, kept: the task's index, and the item's number."""
    return [(row["task"], row["item"]) for row in await tx.fetch(KEPT_ITEMS, run, tasks)]


STORED_ENDS = """
with named as (
    select * from unnest($2::integer[], $3::text[]) as k (task, name)
), ended as (
    select n.task, e.item, e.status in ('completed', 'skipped') as is_good
    from named n join execution e on e.parent = $1 and e.task = n.name
    union all
    select n.task, a.item, a.status in ('completed', 'skipped')
    from named n join archive a on a.task = n.name
    where a.parent = $1 and a.root = (select root from archive where id = $1 limit 1)
    union all
    select k.task, k.item, k.error is null from named n join workflow_kept k on k.execution_id = $1 and k.task = n.task
    union all
    select k.task, k.item, k.error is null
    from archive a cross join jsonb_to_recordset(a.state -> 'kept') as k (task integer, item integer, error jsonb)
    join named n on n.task = k.task
    where a.id = $1
)
select task, count(distinct item) as ends, count(distinct item) filter (where is_good) as good from ended group by task
"""


@dataclass(frozen=True, slots=True)
class StoredEnds:
    """The numbers of a task's ends that are stored: of all of them, and of those that completed or were skipped. Each
    item counts once."""

    task: int
    ends: int
    good: int


async def read_stored_ends(
    tx: Transaction, run: UUID, tasks: Sequence[int], names: Sequence[str]
) -> dict[int, StoredEnds]:
    """Return the stored ends of these tasks (indexes, and their names) of a run, by task. Tasks without any are left out."""
    rows = await tx.fetch(STORED_ENDS, run, tasks, names)
    return {stored.task: stored for stored in rows_as(StoredEnds, rows)}


COPY = "select keep_results($1, $2, $3::integer[], $4::text[])"


async def copy(tx: Transaction, run: UUID, old_run: UUID, tasks: Sequence[int], names: Sequence[str]) -> None:
    """Copy the results of these tasks (indexes, and their names) from the run before."""
    await tx.fetch(COPY, run, old_run, tasks, names)


FORGET = """
delete from workflow_kept k using unnest($1::uuid[], $2::integer[]) as x (execution_id, task)
where k.execution_id = x.execution_id and k.task = x.task
"""


async def forget(tx: Transaction, tasks: Sequence[tuple[UUID, int]]) -> None:
    """Delete the results that re-runs kept. `tasks` are pairs of a re-run and the index of a task."""
    await tx.fetch(FORGET, [id for id, _ in tasks], [task for _, task in tasks])
