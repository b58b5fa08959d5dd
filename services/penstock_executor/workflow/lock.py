"""Advances workflows in the database: lock, read, decide, write. A batch of completions advances each
workflow once, and all of them together cost a few statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import orjson

from penstock.engine import advance as engine
from penstock.engine.commands import stop
from penstock.engine.decision import Change, Decision
from penstock.engine.facts import Facts, Needed
from penstock.engine.kept import Kept
from penstock.engine.plan import Plan
from penstock.engine.scope import Steps
from penstock.engine.state import Head
from penstock.engine.state_json import read_head
from penstock.errors import PenstockError
from penstock.language.workflows.model import Workflow
from penstock.store import catalog
from penstock.store.database import Row, Transaction
from penstock_executor.workflow.commands import obey
from penstock_executor.workflow.previous_run import keep
from penstock_executor.workflow.read import answer

OPEN = "select * from open_workflows($1::uuid[], true)"
COMMANDS = """
select id, execution_id, kind, task, value::text as value from workflow_command
where execution_id = any($1::uuid[]) and obeyed_at is null order by id
"""


@dataclass(slots=True)
class Run:
    """A run that is being advanced."""

    row: Row
    plan: Plan
    facts: Facts = field(default_factory=Facts)
    decisions: list[Decision] = field(default_factory=list)
    commands: list[Row] = field(default_factory=list)
    refused: dict[int, str] = field(default_factory=dict)
    """Why commands could not be obeyed, by their ids."""
    kept: Mapping[int, Kept] = field(default_factory=dict)
    """Of a re-run that begins: what it keeps of the run before."""

    @property
    def id(self) -> UUID:
        id: UUID = self.row["execution_id"]
        return id

    @property
    def system(self) -> dict[str, Any]:
        return {
            "id": str(self.row["execution_id"]),
            "workflow": self.plan.workflow.ref,
            "depth": self.row["depth"],
            "tenant": self.row["tenant"],
            "created_at": self.row["created_at"].isoformat(),
        }


async def begun(tx: Transaction, ids: Sequence[UUID]) -> list[Run]:
    """These workflows, if they run: locked until the transaction ends, with what people told them meanwhile. Those that
    just start get their state."""
    runs = await opened(tx, await tx.fetch(OPEN, ids))
    by_id = {run.id: run for run in runs}
    for command in await tx.fetch(COMMANDS, list(by_id)):
        by_id[command["execution_id"]].commands.append(command)
    for run in runs:
        if run.row["rerun"] is not None and run.row["head"] is None:
            run.kept = await keep(tx, run.id, run.plan, orjson.loads(run.row["rerun"]))
    return runs


async def opened(tx: Transaction, rows: Sequence[Row]) -> list[Run]:
    """Workflows that the database has locked and read (rows of `open_workflows`), ready to be advanced."""
    missing = {row["definition_id"] for row in rows if ("plan", row["definition_id"]) not in tx.cache}
    if missing:
        for id, body in (await catalog.bodies(tx, missing)).items():
            document = {key: value for key, value in body.items() if key != "kind"}
            tx.cache["plan", id] = Plan(Workflow.model_validate(document))
    return [_run(row, tx.cache["plan", row["definition_id"]]) for row in rows]


def _run(row: Row, plan: Plan) -> Run:
    facts = Facts(rerun=row["rerun"] is not None)
    if row["params"] is not None:
        facts.parameters = plan.parameters(orjson.loads(row["params"]))
        if row["context"] is not None:
            facts.context = orjson.loads(row["context"])
    return Run(row, plan, facts)


async def decide(tx: Transaction, runs: Sequence[Run], changes: Mapping[UUID, Sequence[Change]]) -> list[Run]:
    """Decide for each of these what comes next, all in lock step: what they ask for is read together."""
    under_way: dict[UUID, Steps[None]] = {run.id: _steps(run, changes.get(run.id, ())) for run in runs}
    by_id = {run.id: run for run in runs}
    while under_way:
        asked: dict[UUID, tuple[Plan, Needed, Facts]] = {}
        for id, steps in list(under_way.items()):
            run = by_id[id]
            try:
                asked[id] = (run.plan, next(steps), run.facts)
            except StopIteration:
                del under_way[id]
        if asked:
            await answer(tx, asked)
    return list(runs)


def _steps(run: Run, changes: Sequence[Change]) -> Steps[None]:
    """Take in what has ended, obey what people said, stop if somebody asked for that: in this order."""
    if run.row["head"] is None:
        head = yield from _decided(run, engine.begin(run.plan, run.facts, run.system, kept=run.kept))
    else:
        head = read_head(run.row["head"])
        yield from _decided(run, engine.advance(run.plan, head, changes, run.facts, run.system))
    for command in run.commands:
        try:
            yield from _decided(run, obey(run.plan, head, run.facts, run.system, command))
        except PenstockError as refusal:
            run.refused[command["id"]] = refusal.message
    while head.stops < run.row["stops"]:
        head.stops += 1
        status = run.row["stop_status"]
        why = {"type": status, "message": run.row["stop_reason"]}
        yield from _decided(run, stop(run.plan, head, run.facts, run.system, status, why))


def _decided(run: Run, steps: Steps[Decision]) -> Steps[Head]:
    decision = yield from steps
    run.decisions.append(decision)
    return decision.head
