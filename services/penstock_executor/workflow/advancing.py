"""Advances workflows in the database: lock, read, decide, write. A batch of completions advances each
workflow once, and all of them together cost a few statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from penstock.database import Row, Transaction
from penstock.errors import PenstockError
from penstock.store import catalog
from penstock.workflows.model import Workflow
from penstock_executor.workflow import advance as engine
from penstock_executor.workflow.decision import Change, Decision
from penstock_executor.workflow.facts import answer
from penstock_executor.workflow.loading import Facts, Needed
from penstock_executor.workflow.obeying import obey
from penstock_executor.workflow.operating import stop
from penstock_executor.workflow.plan import Plan
from penstock_executor.workflow.scope import Steps
from penstock_executor.workflow.state import Head
from penstock_executor.workflow.written import read_head

LOCK = "select lock_workflows($1::uuid[])"
CREATE = """
insert into workflow (execution_id, definition_id, tenant, depth)
select e.id, e.definition_id, split_part(n.name, '::', 1), coalesce((p.origin ->> 'depth')::smallint, 0)
from execution e
join namespace n on n.id = e.namespace_id
join payload p on p.execution_id = e.id
where e.id = any($1::uuid[]) and e.status = 'running' and n.queue = 'workflow.started'
on conflict do nothing
"""
READ = """
select w.execution_id, w.definition_id, w.depth, w.tenant, w.head::text as head, w.stop_status, w.stop_reason,
    e.created_at
from workflow w join execution e on e.id = w.execution_id
where w.execution_id = any($1::uuid[]) and e.status = 'running'
"""


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


async def locked(tx: Transaction, ids: Sequence[UUID], *, create: bool = False) -> list[Run]:
    """Those of these workflows that still run, locked until the transaction ends, their state read after the
    lock."""
    await tx.fetch(LOCK, ids)
    if create:
        await tx.fetch(CREATE, ids)
    rows = await tx.fetch(READ, ids)
    missing = {row["definition_id"] for row in rows if ("plan", row["definition_id"]) not in tx.cache}
    if missing:
        for id, body in (await catalog.bodies(tx, missing)).items():
            document = {key: value for key, value in body.items() if key != "kind"}
            tx.cache["plan", id] = Plan(Workflow.model_validate(document))
    runs = {row["execution_id"]: Run(row, tx.cache["plan", row["definition_id"]]) for row in rows}
    if create:  # commands come with the same message as the start
        for command in await tx.fetch(COMMANDS, list(runs)):
            runs[command["execution_id"]].commands.append(command)
    return list(runs.values())


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
        head = yield from _decided(run, engine.begin(run.plan, run.facts, run.system))
    else:
        head = read_head(run.row["head"])
        yield from _decided(run, engine.advance(run.plan, head, changes, run.facts, run.system))
    for command in run.commands:
        try:
            yield from _decided(run, obey(run.plan, head, run.facts, run.system, command))
        except PenstockError as refusal:
            run.refused[command["id"]] = refusal.message
    status = run.row["stop_status"]
    if status is not None and head.phase == "running":
        why = {"type": status, "message": run.row["stop_reason"]}
        yield from _decided(run, stop(run.plan, head, run.facts, run.system, status, why))


def _decided(run: Run, steps: Steps[Decision]) -> Steps[Head]:
    decision = yield from steps
    run.decisions.append(decision)
    return decision.head
