"""Carries out what was decided: state, variables, children and ends, in set-based statements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import orjson

from penstock import placement
from penstock.database import Row, Transaction
from penstock.errors import PenstockError
from penstock.ids import new_id
from penstock.messages import WORKFLOW_STARTED
from penstock.moves import FAILED
from penstock.schemas import Schema
from penstock.store import catalog, executions
from penstock.workflows.model import policies_of
from penstock_executor.workflow.advancing import Run
from penstock_executor.workflow.decision import Start
from penstock_executor.workflow.written import failing, head_json, record_json

HEADS = """
update workflow w set head = x.head::jsonb from unnest($1::uuid[], $2::text[]) as x (id, head) where w.execution_id = x.id
"""
RECORDS = """
insert into workflow_task as t (execution_id, task, failing, record)
select x.id, x.task, x.failing, x.record::jsonb
from unnest($1::uuid[], $2::integer[], $3::boolean[], $4::text[]) as x (id, task, failing, record)
on conflict (execution_id, task) do update set failing = excluded.failing, record = excluded.record
"""
VARIABLES = """
insert into workflow_variable (execution_id, writer, name, value)
select x.id, x.writer, x.name, x.value::jsonb
from unnest($1::uuid[], $2::integer[], $3::text[], $4::text[]) as x (id, writer, name, value)
on conflict (execution_id, writer, name) do update set value = excluded.value
"""
ITEMS = """
insert into workflow_item (execution_id, task, item, value)
select x.id, x.task, x.item, x.value::jsonb
from unnest($1::uuid[], $2::integer[], $3::integer[], $4::text[]) as x (id, task, item, value)
on conflict do nothing
"""
REQUEST = """
select * from request_executions($1::uuid[], $2::integer[], $3::integer[], $4::text[], $5::text[], $6::text[], null,
    $7::timestamptz[], $8::uuid[], $9::text[], $10::integer[], true)
"""
FINISH = "select * from finish_workflows($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[])"
OPEN = """
select id from execution where parent = $1 and finished_at is null and ($2::text[] is null or task = any($2::text[]))
"""
AGAIN = "select * from stage($1, $2::uuid[], 1)"
NOW = "select clock_timestamp()"
OBEYED = """
update workflow_command c set obeyed_at = clock_timestamp(), error = x.error
from unnest($1::bigint[], $2::text[]) as x (id, error) where c.id = x.id
"""


@dataclass(slots=True)
class Children:
    """Executions to create, by column of `request_executions`."""

    columns: list[list[Any]] = field(default_factory=lambda: [[] for _ in range(10)])

    def add(self, *values: Any) -> None:
        for column, value in zip(self.columns, values, strict=True):
            column.append(value)


async def carry_out(tx: Transaction, runs: Sequence[Run]) -> None:
    """Write everything that was decided. Call it in the transaction that holds the locks."""
    await _write_state(tx, runs)
    for run in runs:
        for decision in run.decisions:
            if decision.cancel_all or decision.cancel:
                names = (
                    None if decision.cancel_all else [run.plan.graph[task].name for task in decision.cancel]
                )
                ids = [row["id"] for row in await tx.fetch(OPEN, run.id, names)]
                if ids:
                    await executions.cancel(tx, ids, "its workflow does not need it any more")
    await _start(tx, runs)
    finals = [(run, d.final) for run in runs for d in run.decisions if d.final is not None]
    if finals:
        await tx.stage(
            FINISH,
            [run.id for run, _ in finals],
            [final.status for _, final in finals],
            [orjson.dumps(final.output).decode() for _, final in finals],
            [None if final.error is None else orjson.dumps(final.error).decode() for _, final in finals],
            [run.row["stop_reason"] for run, _ in finals],
        )
    obeyed = [(command["id"], run.refused.get(command["id"])) for run in runs for command in run.commands]
    if obeyed:
        await tx.fetch(OBEYED, [id for id, _ in obeyed], [error for _, error in obeyed])
    again = [run.id for run in runs if run.decisions and run.decisions[-1].again]
    if again:
        await tx.stage(AGAIN, WORKFLOW_STARTED, again)


async def _write_state(tx: Transaction, runs: Sequence[Run]) -> None:
    decided = [run for run in runs if run.decisions]
    await tx.fetch(HEADS, [run.id for run in decided], [head_json(run.decisions[-1].head) for run in decided])
    records = {
        (run.id, task): record for run in decided for d in run.decisions for task, record in d.records.items()
    }
    if records:
        await tx.fetch(
            RECORDS,
            [id for id, _ in records],
            [task for _, task in records],
            [failing(record) for record in records.values()],
            [record_json(record) for record in records.values()],
        )
    published = {
        (run.id, p.writer, p.name): p.value for run in decided for d in run.decisions for p in d.published
    }
    if published:
        await tx.fetch(
            VARIABLES,
            [id for id, _, _ in published],
            [writer for _, writer, _ in published],
            [name for _, _, name in published],
            [orjson.dumps(value).decode() for value in published.values()],
        )
    items = [
        (run.id, task, number, value)
        for run in decided
        for d in run.decisions
        for task, values in d.keep_items.items()
        for number, value in enumerate(values)
    ]
    if items:
        await tx.fetch(
            ITEMS,
            [id for id, _, _, _ in items],
            [task for _, task, _, _ in items],
            [number for _, _, number, _ in items],
            [orjson.dumps(value).decode() for _, _, _, value in items],
        )


async def _start(tx: Transaction, runs: Sequence[Run]) -> None:
    starts = [(run, start) for run in runs for d in run.decisions for start in d.starts]
    if not starts:
        return
    refs = sorted({_target(start) for _, start in starts})
    targets = {row["ref"]: row for row in await catalog.current(tx, ["action", "workflow"], refs)}
    schemas = await catalog.parameter_schemas(tx, [row["definition_id"] for row in targets.values()])
    spaces = await placement.places(tx, {_space(run, start): _target(start) for run, start in starts})
    now: datetime | None = None
    if any(start.delay for _, start in starts):
        now = (await tx.fetch(NOW))[0][0]
    children, refused = Children(), []
    origins = {
        run.id: orjson.dumps({"workflow": str(run.id), "depth": run.row["depth"] + 1}).decode()
        for run in runs
    }
    for run, start in starts:
        target, parent = targets.get(_target(start)), run.id
        id = new_id()
        params, error = _params(target, schemas, start)
        if error is not None:
            refused.append((id, error))
        options = policies_of(start.step)
        children.add(
            id,
            spaces[_space(run, start)],
            target["definition_id"] if target is not None else run.row["definition_id"],
            params,
            orjson.dumps(options).decode() if options else None,
            origins[parent],
            # what is refused must not start before it is ended below
            _far(now)
            if error is not None
            else now + timedelta(seconds=start.delay)
            if now and start.delay
            else None,
            parent,
            start.name,
            -1 if start.item is None else start.item,
        )
    await tx.stage(REQUEST, *children.columns)
    for id, error in refused:
        await executions.end(tx, [id], ["requested"], FAILED, error["message"], orjson.dumps(error).decode())


def _far(now: datetime | None) -> datetime:
    return datetime.fromisoformat("9000-01-01T00:00:00+00:00")


def _target(start: Start) -> str:
    ref = start.step.action or start.step.workflow
    assert ref is not None, "tasks of other kinds are refused when the workflow is applied"
    return ref


def _space(run: Run, start: Start) -> str:
    name = placement.child_name(run.row["tenant"], run.plan.workflow.ref, start.name)
    return f"{name}@{start.route}" if start.route else name


def _params(
    target: Row | None, schemas: dict[int, Schema], start: Start
) -> tuple[str, dict[str, str] | None]:
    """The input as JSON; or nothing, and the reason why the task fails."""
    if target is None or not target["enabled"]:
        return "{}", {"type": "NotFound", "message": f"{_target(start)} is not registered, or is disabled"}
    try:
        return schemas[target["definition_id"]].check(start.body).decode(), None
    except PenstockError as error:
        return "{}", {"type": type(error).__name__, "message": error.message}


def parents(rows: Sequence[Row]) -> list[UUID]:
    """The workflows of these children, each once, in the order of locks."""
    return sorted({row["parent"] for row in rows})
