"""The opening of workflows: they are locked until the transaction ends, and read with their ends and commands."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from penstock import tracing
from penstock.advance.read_previous_run import keep_results
from penstock.engine import ChildEnded, Command, Facts, KeptTask, Plan
from penstock.language.workflows.model import Workflow
from penstock.store.definitions import catalog
from penstock.store.session.database import Session, Transaction
from penstock.store.workflows import pending_commands, state
from penstock.store.workflows.state import EndedExecution, StoredWorkflow
from penstock.tracing import Trace


@dataclass(slots=True)
class OpenWorkflow:
    """A locked workflow, with its new input: `ends` of executions, and `commands`. `kept_tasks` are the results that a
    beginning re-run keeps from the run before. `trace` is the workflow's trace, if it is traced."""

    stored: StoredWorkflow
    plan: Plan
    facts: Facts
    ends: list[ChildEnded] = field(default_factory=list)
    commands: Sequence[Command] = ()
    kept_tasks: Mapping[int, KeptTask] = field(default_factory=dict)
    trace: Trace | None = None
    turn_began: datetime | None = None
    """The instant at which the workflow's turn began; None if the workflow is not traced."""

    @property
    def id(self) -> UUID:
        return self.stored.id

    @property
    def system(self) -> dict[str, Any]:
        """Return the values that expressions see as `system`."""
        return {
            "id": str(self.stored.id),
            "workflow": self.plan.workflow.ref,
            "depth": self.stored.depth,
            "tenant": self.stored.tenant,
            "created_at": self.stored.created_at.isoformat(),
        }


async def open_parents(
    tx: Transaction, ids: Sequence[UUID]
) -> tuple[list[EndedExecution], list[OpenWorkflow]]:
    """Return the ended executions among `ids` that are children or have followers, and the running workflows of the
    children. The workflows have those ends as input."""
    ended_executions, stored = await state.open_parents(tx, ids)
    return ended_executions, await with_ends(tx, ended_executions, stored)


async def with_ends(
    tx: Transaction, ended_executions: Sequence[EndedExecution], stored: Sequence[StoredWorkflow]
) -> list[OpenWorkflow]:
    """Open the workflows of these ended tasks, with the ends as input."""
    workflows = {workflow.id: workflow for workflow in await _opened(tx, stored)}
    for execution in ended_executions:
        if execution.parent in workflows:
            assert execution.parent is not None
            assert execution.task is not None
            workflow = workflows[execution.parent]
            task = workflow.plan.index(execution.task)
            workflow.ends.append(ChildEnded(task, execution.status, execution.item))
    return list(workflows.values())


async def open_workflows(tx: Transaction, ids: Sequence[UUID]) -> list[OpenWorkflow]:
    """Open the running workflows among these, with their pending commands. A workflow that just starts gets its row."""
    workflows = await _opened(tx, await state.open_workflows(tx, ids))
    pending = await pending_commands.read_pending(tx, [workflow.id for workflow in workflows])
    for workflow in workflows:
        workflow.commands = pending.get(workflow.id, ())
        if workflow.stored.rerun is not None and workflow.stored.state is None:
            workflow.kept_tasks = await keep_results(tx, workflow.id, workflow.plan, workflow.stored.rerun)
    return workflows


async def _opened(tx: Transaction, stored: Sequence[StoredWorkflow]) -> list[OpenWorkflow]:
    plans = await read_plans(tx, {workflow.definition for workflow in stored})
    traces = await state.read_traces(tx, [workflow.id for workflow in stored]) if tracing.is_on() else {}
    return [opened(workflow, plans[workflow.definition], traces.get(workflow.id)) for workflow in stored]


async def read_plans(db: Session | Transaction, definitions: Collection[int]) -> dict[int, Plan]:
    """Return the plans of workflow definitions. Each is compiled once per process, since a stored version never
    changes."""

    def plan(body: Mapping[str, Any]) -> Plan:
        document = {key: value for key, value in body.items() if key != "kind"}
        return Plan(Workflow.model_validate(document), db.settings.payload_cap)

    return await catalog.compiled(db, "plan", definitions, plan)


def opened(stored: StoredWorkflow, plan: Plan, trace: Trace | None) -> OpenWorkflow:
    """Return a stored workflow as open, with its small facts and without input."""
    facts = Facts(rerun=stored.rerun is not None)
    if stored.parameters is not None:
        facts.parameters = plan.parameters(stored.parameters)
        facts.context = dict(stored.context or {})
    return OpenWorkflow(stored, plan, facts, trace=trace)
