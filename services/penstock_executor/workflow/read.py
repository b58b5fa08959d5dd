"""Reads what decisions ask for: of all workflows that are being advanced together, in a few statements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

import orjson

from penstock.engine.facts import WORKFLOW, Ended, Facts, Needed, Variables
from penstock.engine.plan import Plan
from penstock.engine.state_json import read_record
from penstock.store.database import Transaction

RECORDS = "select * from task_records($1::uuid[], $2::integer[])"
RESULTS = """
select e.parent, x.task, e.item, r.result::text as result, r.error::text as error
from unnest($1::uuid[], $2::integer[], $3::text[]) as x (parent, task, name)
join execution e on e.parent = x.parent and e.task = x.name
join result r on r.execution_id = e.id
"""
KEPT = """
select k.execution_id as parent, k.task, k.item, k.result::text as result, k.error::text as error
from unnest($1::uuid[], $2::integer[]) as x (execution_id, task) join workflow_kept k using (execution_id, task)
"""
VARIABLES = """
select execution_id, writer, name, value::text as value from workflow_variable
where execution_id = any($1::uuid[]) and ($2::text[] is null or name = any($2::text[]))
"""
ITEMS = """
select i.execution_id, i.task, i.item, i.value::text as value
from unnest($1::uuid[], $2::integer[], $3::integer[], $4::integer[]) as x (execution_id, task, first, last)
join workflow_item i on i.execution_id = x.execution_id and i.task = x.task and i.item >= x.first and i.item < x.last
"""
PARAMETERS = """
select execution_id, params::text as params, (options -> 'context')::text as context
from payload where execution_id = any($1::uuid[])
"""
FAILURES = """
select x.execution_id, t.task, t.record::text as record
from unnest($1::uuid[]) as x (execution_id)
cross join lateral (
    select task, record from workflow_task where execution_id = x.execution_id and failing order by task limit 10) t
"""


async def answer(tx: Transaction, asked: Mapping[UUID, tuple[Plan, Needed, Facts]]) -> None:
    """Fill in what each of these asks for."""
    await _records(tx, asked)
    await _results(tx, asked)
    await _variables(tx, asked)
    await _items(tx, asked)
    wanted = [id for id, (_, needed, _) in asked.items() if needed.parameters]
    if wanted:
        for row in await tx.fetch(PARAMETERS, wanted):
            plan, _, facts = asked[row["execution_id"]]
            facts.parameters = plan.parameters(orjson.loads(row["params"]))
            if row["context"] is not None:
                facts.context = orjson.loads(row["context"])
    failing = [id for id, (_, needed, _) in asked.items() if needed.failures]
    if failing:
        for id in failing:
            asked[id][2].failures = {}
        for row in await tx.fetch(FAILURES, failing):
            found = asked[row["execution_id"]][2].failures
            assert found is not None
            found[row["task"]] = read_record(row["record"])


async def _records(tx: Transaction, asked: Mapping[UUID, tuple[Plan, Needed, Facts]]) -> None:
    pairs = [(id, task) for id, (_, needed, _) in asked.items() for task in needed.records]
    if not pairs:
        return
    for id, task in pairs:
        asked[id][2].records[task] = None
    for row in await tx.fetch(RECORDS, *(list(column) for column in zip(*pairs, strict=True))):
        asked[row["execution_id"]][2].records[row["task"]] = read_record(row["record"])


async def _results(tx: Transaction, asked: Mapping[UUID, tuple[Plan, Needed, Facts]]) -> None:
    triples = [
        (id, task, plan.graph[task].name)
        for id, (plan, needed, _) in asked.items()
        for task in needed.results
    ]
    if not triples:
        return
    found: dict[tuple[UUID, int], dict[int, Ended]] = {}
    rows = await tx.fetch(RESULTS, *(list(column) for column in zip(*triples, strict=True)))
    kept = [(id, task) for id, task, _ in triples if asked[id][2].rerun]
    if kept:  # first, so that what the run did itself goes over it
        rows = await tx.fetch(KEPT, *(list(column) for column in zip(*kept, strict=True))) + rows
    for row in rows:
        ended = Ended(
            None if row["result"] is None else orjson.loads(row["result"]),
            None if row["error"] is None else orjson.loads(row["error"]),
        )
        found.setdefault((row["parent"], row["task"]), {})[row["item"]] = ended
    unknown = [(id, task) for id, task, _ in triples if task not in asked[id][2].records]
    fans = {}
    if unknown:
        for row in await tx.fetch(RECORDS, *(list(column) for column in zip(*unknown, strict=True))):
            fans[row["execution_id"], row["task"]] = read_record(row["record"]).fan
    for id, task, _name in triples:
        facts = asked[id][2]
        record = facts.records.get(task)
        fan = record.fan if record is not None else fans.get((id, task))
        items = found.get((id, task), {})
        if fan is not None:
            facts.results[task] = Ended([items[n].result if n in items else None for n in range(fan.total)])
        else:
            facts.results[task] = items.get(-1, Ended())


async def _variables(tx: Transaction, asked: Mapping[UUID, tuple[Plan, Needed, Facts]]) -> None:
    wanted = [id for id, (_, needed, _) in asked.items() if needed.variables]
    if not wanted:
        return
    stored: dict[UUID, list[tuple[int, str, str]]] = {}
    for row in await tx.fetch(VARIABLES, wanted, _names(asked[id][1] for id in wanted)):
        stored.setdefault(row["execution_id"], []).append((row["writer"], row["name"], row["value"]))
    for id in wanted:
        _, needed, facts = asked[id]
        for reader, request in needed.variables.items():
            found: dict[str, tuple[int, str]] = {}
            for writer, name, value in stored.get(id, ()):
                if _sees(request, writer, name) and writer >= found.get(name, (-9, ""))[0]:
                    found[name] = (writer, value)
            facts.variables[reader] = (
                request.names,
                {name: (writer, orjson.loads(value)) for name, (writer, value) in found.items()},
            )


def _names(needed: Iterable[Needed]) -> list[str] | None:
    """The names that are asked for; None for all."""
    names: set[str] = set()
    for request in (variables for one in needed for variables in one.variables.values()):
        if request.names is None:
            return None
        names |= request.names
    return sorted(names)


def _sees(request: Variables, writer: int, name: str) -> bool:
    if request.names is not None and name not in request.names:
        return False
    if writer == WORKFLOW:
        return True
    return writer < request.below if request.writers is None else writer in request.writers


async def _items(tx: Transaction, asked: Mapping[UUID, tuple[Plan, Needed, Facts]]) -> None:
    ranges = [
        (id, task, first, last)
        for id, (_, needed, _) in asked.items()
        for task, (first, last) in needed.items.items()
    ]
    if not ranges:
        return
    for row in await tx.fetch(ITEMS, *(list(column) for column in zip(*ranges, strict=True))):
        kept = asked[row["execution_id"]][2].items.setdefault(row["task"], {})
        kept[row["item"]] = orjson.loads(row["value"])
