"""The facts that decisions on workflows need. The caller holds the locks of the workflows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson

from penstock.engine.facts import TaskResult
from penstock.engine.serialization import load_task_state
from penstock.engine.state import TaskState
from penstock.store.session.database import Row, Transaction


@dataclass(slots=True)
class StoredTask:
    workflow: UUID
    task: int
    state: TaskState


TASKS = "select * from task_records($1::uuid[], $2::integer[])"


async def read_tasks(tx: Transaction, tasks: Sequence[tuple[UUID, int]]) -> list[StoredTask]:
    """Return the states of tasks (workflow, task). A task without a state is left out."""
    rows = await tx.fetch(TASKS, [id for id, _ in tasks], [task for _, task in tasks])
    return [StoredTask(row["execution_id"], row["task"], load_task_state(row["record"])) for row in rows]


@dataclass(slots=True)
class StoredResult:
    """The result of a task, or the error of one of its items (`item`)."""

    workflow: UUID
    task: int
    item: int | None
    result: TaskResult


RESULTS = """
select e.parent as execution_id, x.task, e.item, r.result::text as result, r.error::text as error, e.attempt
from unnest($1::uuid[], $2::integer[], $3::text[]) as x (parent, task, name)
join execution e on e.parent = x.parent and e.task = x.name
join result r on r.execution_id = e.id
"""


async def read_results(tx: Transaction, tasks: Sequence[tuple[UUID, int, str]]) -> list[StoredResult]:
    """Return the results of the executions of tasks (workflow, task, name of the task)."""
    rows = await tx.fetch(
        RESULTS, [id for id, _, _ in tasks], [task for _, task, _ in tasks], [name for _, _, name in tasks]
    )
    return [_result(row) for row in rows]


ITEM_RESULTS = """
with fan_out as (
    select * from unnest($1::uuid[], $2::integer[], $3::text[]) as x (execution_id, task, name)
), stored as materialized (
    select x.execution_id, x.task, e.item, false as is_kept, r.result::text as result
    from fan_out x
    join execution e on e.parent = x.execution_id and e.task = x.name
    join result r on r.execution_id = e.id
    where r.result is not null
    union all
    select x.execution_id, x.task, k.item, true, k.result::text
    from fan_out x join workflow_kept k using (execution_id, task)
    where k.result is not null
), total as (
    select execution_id, task, sum(octet_length(result) + 1)::bigint + 1 as bytes from stored group by execution_id, task
)
select execution_id, task, s.item, s.is_kept, s.result, null::bigint as oversize
from stored s join total t using (execution_id, task) where t.bytes <= $4
union all
select execution_id, task, null, false, null, t.bytes from total t where t.bytes > $4
"""


@dataclass(slots=True)
class StoredItemResults:
    """The results of a fan-out by item. If they exceed the bound, they are not read, and `oversize` is their number
    of bytes."""

    by_item: dict[int, Any]
    oversize: int | None = None


async def read_item_results(
    tx: Transaction, fan_outs: Sequence[tuple[UUID, int, str]], bound: int
) -> dict[tuple[UUID, int], StoredItemResults]:
    """Return the results of the items of fan-outs (workflow, task, name of the task), also those that a re-run kept.
    If a fan-out has more than `bound` bytes of results, only their number of bytes is read."""
    rows = await tx.fetch(
        ITEM_RESULTS,
        [id for id, _, _ in fan_outs],
        [task for _, task, _ in fan_outs],
        [name for _, _, name in fan_outs],
        bound,
    )
    results: dict[tuple[UUID, int], StoredItemResults] = {}
    for row in sorted(
        rows, key=lambda row: not row["is_kept"]
    ):  # the run's own results override those that it kept
        of_task = results.setdefault((row["execution_id"], row["task"]), StoredItemResults({}))
        if row["oversize"] is not None:
            of_task.oversize = row["oversize"]
        else:
            of_task.by_item[row["item"]] = orjson.loads(row["result"])
    return results


ITEM_ERRORS = """
select x.parent as execution_id, x.task, f.item, null as result, f.error, f.attempt
from unnest($1::uuid[], $2::integer[], $3::text[]) as x (parent, task, name)
cross join lateral (
    select e.item, r.error::text as error, e.attempt from execution e join result r on r.execution_id = e.id
    where e.parent = x.parent and e.task = x.name and e.item >= 0 and r.error is not null
    order by e.status = 'cancelled', e.finished_at, e.item limit $4) f
"""


async def read_item_errors(
    tx: Transaction, fan_outs: Sequence[tuple[UUID, int, str]], limit: int
) -> list[StoredResult]:
    """Return the errors of the items that failed first, at most `limit` of each task (workflow, task, name of the task).
    Items that were cancelled, since others had failed, come last."""
    rows = await tx.fetch(
        ITEM_ERRORS,
        [id for id, _, _ in fan_outs],
        [task for _, task, _ in fan_outs],
        [name for _, _, name in fan_outs],
        limit,
    )
    return [_result(row) for row in rows]


KEPT_RESULTS = """
select k.execution_id, k.task, k.item, k.result::text as result, k.error::text as error, null::integer as attempt
from unnest($1::uuid[], $2::integer[]) as x (execution_id, task) join workflow_kept k using (execution_id, task)
"""


async def read_kept_results(tx: Transaction, tasks: Sequence[tuple[UUID, int]]) -> list[StoredResult]:
    """Return the results of tasks that re-runs kept from the run before."""
    rows = await tx.fetch(KEPT_RESULTS, [id for id, _ in tasks], [task for _, task in tasks])
    return [_result(row) for row in rows]


def _result(row: Row) -> StoredResult:
    result, error = row["result"], row["error"]
    return StoredResult(
        row["execution_id"],
        row["task"],
        None if row["item"] < 0 else row["item"],
        TaskResult(
            None if result is None else orjson.loads(result),
            None if error is None else orjson.loads(error),
            row["attempt"],
        ),
    )


@dataclass(slots=True)
class StoredVariable:
    """A value that the task number `writer` gave to a variable of its workflow. `value` stays JSON text: where several
    tasks gave a value, only the one in scope is parsed."""

    workflow: UUID
    writer: int
    name: str
    value: str


VARIABLES = """
select execution_id, writer, name, value::text as value from workflow_variable
where execution_id = any($1::uuid[]) and ($2::text[] is null or name = any($2::text[]))
"""


async def read_variables(
    tx: Transaction, workflows: Sequence[UUID], names: Sequence[str] | None
) -> list[StoredVariable]:
    """Return the variables of these workflows with one of these names (None: any), from all writers."""
    rows = await tx.fetch(VARIABLES, workflows, names)
    return [StoredVariable(row["execution_id"], row["writer"], row["name"], row["value"]) for row in rows]


@dataclass(slots=True)
class StoredItem:
    workflow: UUID
    task: int
    item: int
    value: Any


ITEMS = """
select i.execution_id, i.task, i.item, i.value::text as value
from unnest($1::uuid[], $2::integer[], $3::integer[], $4::integer[]) as x (execution_id, task, first, last)
join workflow_item i on i.execution_id = x.execution_id and i.task = x.task and i.item >= x.first and i.item < x.last
"""


async def read_items(tx: Transaction, ranges: Sequence[tuple[UUID, int, int, int]]) -> list[StoredItem]:
    """Return the items in these ranges: workflow, task, first item, and the one after the last."""
    rows = await tx.fetch(ITEMS, *(list(column) for column in zip(*ranges, strict=True)))
    return [
        StoredItem(row["execution_id"], row["task"], row["item"], orjson.loads(row["value"])) for row in rows
    ]


STORE_ITEMS = """
insert into workflow_item (execution_id, task, item, value)
select x.id, x.task, i.place - 1, i.value::jsonb
from unnest($1::uuid[], $2::integer[], $3::text[]) as x (id, task, items)
cross join json_array_elements(x.items::json) with ordinality as i (value, place)
on conflict do nothing
"""


async def store_items(tx: Transaction, new: Sequence[tuple[UUID, int, Sequence[Any]]]) -> None:
    """Store the items of fan-outs that start in parts: workflow, task, all items. Each list is sent as one text: as
    separate values, a hundred thousand items would need as many texts and ids."""
    await tx.fetch(
        STORE_ITEMS,
        [workflow for workflow, _, _ in new],
        [task for _, task, _ in new],
        [orjson.dumps(items).decode() for _, _, items in new],
    )


@dataclass(slots=True)
class StoredParameters:
    """The parameters and the context with which a run was started."""

    workflow: UUID
    parameters: Mapping[str, Any]
    context: Mapping[str, Any] | None


PARAMETERS = """
select execution_id, params::text as params, (options -> 'context')::text as context
from payload where execution_id = any($1::uuid[])
"""


async def read_parameters(tx: Transaction, workflows: Sequence[UUID]) -> list[StoredParameters]:
    """Return the parameters and the context with which these runs were started."""
    rows = await tx.fetch(PARAMETERS, workflows)
    return [
        StoredParameters(
            row["execution_id"],
            orjson.loads(row["params"]),
            None if row["context"] is None else orjson.loads(row["context"]),
        )
        for row in rows
    ]


FAILURES = """
select x.execution_id, t.task, t.record::text as record
from unnest($1::uuid[]) as x (execution_id)
cross join lateral (
    select task, record from workflow_task where execution_id = x.execution_id and failing order by task limit 10) t
"""


async def read_failures(tx: Transaction, workflows: Sequence[UUID]) -> list[StoredTask]:
    """Return at most ten tasks of each workflow with an unhandled failure."""
    rows = await tx.fetch(FAILURES, workflows)
    return [StoredTask(row["execution_id"], row["task"], load_task_state(row["record"])) for row in rows]
