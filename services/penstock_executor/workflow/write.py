"""Carries out what was decided: state, variables, children and ends, in set-based statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import orjson

from penstock.engine.decision import Start
from penstock.engine.state_json import failing, head_json, record_json
from penstock.ids import new_id
from penstock.language.workflows.model import policies_of
from penstock.moves import FAILED, REQUESTED
from penstock.store import catalog, executions, namespaces
from penstock.store.database import Transaction
from penstock.store.queues import WORKFLOW_STARTED
from penstock_executor.workflow.lock import Run
from penstock_executor.workflow.targets import (
    Target,
    current_targets,
    known_targets,
    params_of,
    remembered,
    target_of,
)

WRITE = """
select write_workflows($1::uuid[], $2::text[], $3::uuid[], $4::integer[], $5::boolean[], $6::text[],
    $7::uuid[], $8::integer[], $9::text[], $10::text[])
"""
ITEMS = """
insert into workflow_item (execution_id, task, item, value)
select x.id, x.task, x.item, x.value::jsonb
from unnest($1::uuid[], $2::integer[], $3::integer[], $4::text[]) as x (id, task, item, value)
on conflict do nothing
"""
START = """
select messages, stale
from start_children($1::text[], $2::integer[], $3::uuid[], $4::integer[], $5::integer[], $6::text[], $7::text[],
    $8::text[], $9::timestamptz[], $10::uuid[], $11::text[], $12::integer[])
"""
WRITE_AND_START = """
select s.messages, s.stale from (
    select count(*) as n from write_workflows($13::uuid[], $14::text[], $15::uuid[], $16::integer[], $17::boolean[], $18::text[],
        $19::uuid[], $20::integer[], $21::text[], $22::text[])
) w
cross join lateral start_children(case when w.n = 1 then $1::text[] end, $2::integer[], $3::uuid[], $4::integer[],
    $5::integer[], $6::text[], $7::text[], $8::text[], $9::timestamptz[], $10::uuid[], $11::text[], $12::integer[]) s
"""
"""Both in one round trip, in this order: rows of workflows are locked before keys."""
FINISH = "select finish_workflows($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[]) as messages"
OPEN = """
select id from execution where parent = $1 and finished_at is null and ($2::text[] is null or task = any($2::text[]))
"""
LOCK = "select lock_runs($1::uuid[])"
AGAIN = "select stage($1, $2::uuid[], 1) as messages"
HOLD = "select hold_children($1::uuid[], $2) as messages"
RELEASE = "select release_children($1::uuid[], $2) as messages"
FORGET = """
delete from workflow_kept k using unnest($1::uuid[], $2::integer[]) as x (execution_id, task)
where k.execution_id = x.execution_id and k.task = x.task
"""
NOW = "select clock_timestamp()"
OBEYED = """
update workflow_command c set obeyed_at = clock_timestamp(), error = x.error
from unnest($1::bigint[], $2::text[]) as x (id, error) where c.id = x.id
"""
NEVER = datetime.fromisoformat("9000-01-01T00:00:00+00:00")
AHEAD = 200
"""Tasks after one that is placed for the first time which are placed with it: six round trips for all, not for each."""


Started = tuple[Run, Start]


@dataclass(slots=True)
class Children:
    """Executions to create, by column of `start_children`."""

    columns: list[list[Any]] = field(default_factory=lambda: [[] for _ in range(10)])

    def add(self, *values: Any) -> None:
        for column, value in zip(self.columns, values, strict=True):
            column.append(value)


async def carry_out(tx: Transaction, runs: Sequence[Run]) -> None:
    """Write everything that was decided. Call it in the transaction that holds the locks."""
    before, after = _starts(runs)
    state = _state(runs)
    together = bool(after) and _only_starts(tx, runs, after)
    if not together:
        await tx.fetch(WRITE, *state)
    await _keep_items(tx, runs)
    await _forget(tx, runs)
    await _hold_or_release(tx, runs)
    if before:  # rows are locked before keys, and starting takes keys
        await tx.fetch(LOCK, await _unneeded(tx, runs))
        await _start(tx, runs, before)
    if unneeded := await _unneeded(tx, runs):
        await executions.cancel(tx, unneeded, "its workflow does not need it any more")
    await _start(tx, runs, after, state if together else None)
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


def _only_starts(tx: Transaction, runs: Sequence[Run], starts: Sequence[Started]) -> bool:
    """Whether nothing comes between what is written and what is started, as in most steps."""
    return all(
        ("namespace", _space(run, start.name, start.route)) in tx.cache for run, start in starts
    ) and not any(
        run.commands or any(d.cancel_all or d.cancel or d.forget or d.keep_items for d in run.decisions)
        for run in runs
    )


def _state(runs: Sequence[Run]) -> list[list[Any]]:
    """What `write_workflows` is given."""
    decided = [run for run in runs if run.decisions]
    records = {
        (run.id, task): record for run in decided for d in run.decisions for task, record in d.records.items()
    }
    published = {
        (run.id, p.writer, p.name): p.value for run in decided for d in run.decisions for p in d.published
    }
    return [
        [run.id for run in decided],
        [head_json(run.decisions[-1].head) for run in decided],
        [id for id, _ in records],
        [task for _, task in records],
        [failing(record) for record in records.values()],
        [record_json(record) for record in records.values()],
        [id for id, _, _ in published],
        [writer for _, writer, _ in published],
        [name for _, _, name in published],
        [orjson.dumps(value).decode() for value in published.values()],
    ]


async def _keep_items(tx: Transaction, runs: Sequence[Run]) -> None:
    items = [
        (run.id, task, number, value)
        for run in runs
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


async def _forget(tx: Transaction, runs: Sequence[Run]) -> None:
    forgotten = [(run.id, task) for run in runs for d in run.decisions for task in d.forget]
    if forgotten:
        await tx.fetch(FORGET, *(list(column) for column in zip(*forgotten, strict=True)))


async def _hold_or_release(tx: Transaction, runs: Sequence[Run]) -> None:
    """Pause what the paused ones have asked for already, and let it go on."""
    told = [run for run in runs if any(command["kind"] in ("pause", "resume") for command in run.commands)]
    for statement, paused in ((HOLD, True), (RELEASE, False)):
        ids = [run.id for run in told if run.decisions[-1].head.paused is paused]
        if ids:
            await tx.stage(
                statement, ids, "its workflow was paused" if paused else "its workflow was resumed"
            )


def _starts(runs: Sequence[Run]) -> tuple[list[Started], list[Started]]:
    """What starts, before and after what is not needed any more is cancelled: what a batch starts and then cancels has to
    be there to be cancelled, and to end."""
    before: list[Started] = []
    after: list[Started] = []
    for run in runs:
        cancels = [n for n, d in enumerate(run.decisions) if d.cancel_all or d.cancel]
        last = cancels[-1] if cancels else -1
        for number, decision in enumerate(run.decisions):
            for start in decision.starts:
                first = number < last or start.task in decision.cancel
                (before if first else after).append((run, start))
    return before, after


async def _unneeded(tx: Transaction, runs: Sequence[Run]) -> list[UUID]:
    """The executions that were decided to be cancelled, as far as they are there."""
    found = []
    for run in runs:
        for decision in run.decisions:
            if decision.cancel_all or decision.cancel:
                names = (
                    None if decision.cancel_all else [run.plan.graph[task].name for task in decision.cancel]
                )
                found += [row["id"] for row in await tx.fetch(OPEN, run.id, names)]
    return found


async def _start(
    tx: Transaction, runs: Sequence[Run], starts: Sequence[Started], state: list[list[Any]] | None = None
) -> None:
    """Start these; and write this state before that, if it is not written yet."""
    if not starts:
        return
    refs = sorted({target_of(start.step) for _, start in starts})
    targets = await known_targets(tx, refs)
    if not await _start_as(tx, runs, starts, targets, remembered(targets), state):
        await _start_as(tx, runs, starts, await current_targets(tx, refs), {})


async def _start_as(
    tx: Transaction,
    runs: Sequence[Run],
    starts: Sequence[Started],
    targets: Mapping[str, Target],
    remembered: Mapping[str, int],
    state: list[list[Any]] | None = None,
) -> bool:
    """Create the executions, as these targets. False, and none created, if one that was `remembered` has changed."""
    schemas = await catalog.parameter_schemas(tx, [target.definition for target in targets.values()])
    spaces = await _places(tx, starts)
    now: datetime | None = None
    if any(start.delay for _, start in starts):
        now = (await tx.fetch(NOW))[0][0]
    children = Children()
    refused: dict[str, list[UUID]] = {}
    origins = {
        run.id: orjson.dumps({"workflow": str(run.id), "depth": run.row["depth"] + 1}).decode()
        for run in runs
    }
    for run, start in starts:
        target, parent = targets.get(target_of(start.step)), run.id
        id = new_id()
        params, error = params_of(
            start, target, schemas, run.row["depth"] + 2, tx.settings.max_workflow_depth
        )
        if error is not None:
            refused.setdefault(orjson.dumps(error).decode(), []).append(id)
        options = policies_of(start.step)
        children.add(
            id,
            spaces[_space(run, start.name, start.route)],
            target.definition if target is not None else run.row["definition_id"],
            params,
            orjson.dumps(options).decode() if options else None,
            origins[parent],
            # what is refused must not start before it is ended below
            NEVER
            if error is not None
            else now + timedelta(seconds=start.delay)
            if now and start.delay
            else None,
            parent,
            start.name,
            -1 if start.item is None else start.item,
        )
    start_children = [list(remembered), list(remembered.values()), *children.columns]
    [row] = await (
        tx.stage(WRITE_AND_START, *start_children, *state) if state else tx.stage(START, *start_children)
    )
    if row["stale"]:
        return False
    for why, ids in refused.items():
        await executions.end(tx, ids, [REQUESTED], FAILED, orjson.loads(why)["message"], why)
    return True


async def _places(tx: Transaction, starts: Sequence[Started]) -> dict[str, int]:
    """The namespaces of what starts, by name."""
    names: dict[str, str] = {}
    for run, start in starts:
        name = _space(run, start.name, start.route)
        if name in names:
            continue
        names[name] = target_of(start.step)
        if ("namespace", name) not in tx.cache:
            graph = run.plan.graph
            for node in map(graph.__getitem__, range(start.task, min(start.task + AHEAD, len(graph)))):
                if node.step.route is None:  # others may be known only once they start
                    names.setdefault(_space(run, node.name, None), target_of(node.step))
    return await namespaces.places(tx, names)


def _space(run: Run, task: str, route: str | None) -> str:
    name = namespaces.child_name(run.row["tenant"], run.plan.workflow.ref, task)
    return f"{name}@{route}" if route else name
