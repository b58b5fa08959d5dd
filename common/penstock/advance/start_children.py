"""The start of tasks' executions: their targets are looked up, their namespaces placed, their parameters checked, and
all created in one statement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

import orjson

from penstock.advance.child_targets import current_targets, known_targets, remembered
from penstock.advance.open_workflows import OpenWorkflow
from penstock.engine import Plan, Start
from penstock.engine.children import child_parameters
from penstock.language.moves import FAILED, REQUESTED
from penstock.language.terms.ids import new_id
from penstock.language.workflows.graph import Node
from penstock.language.workflows.target import Target, target_ref
from penstock.language.workflows.task import policies_of
from penstock.store.admission import namespaces
from penstock.store.admission.namespaces import Namespace
from penstock.store.definitions import catalog
from penstock.store.executions import executions
from penstock.store.session.database import Session, Transaction
from penstock.store.workflows import children
from penstock.store.workflows.children import NewChild
from penstock.store.workflows.state import NewState

PLACED_AHEAD = 200
"""The number of following tasks that are placed together with a new one: six round trips for all of them, not for
each."""


class ChildStart(NamedTuple):
    """A start, its workflow, and the namespace of its task."""

    workflow: OpenWorkflow
    start: Start
    namespace: Namespace

    @classmethod
    def of(cls, workflow: OpenWorkflow, start: Start) -> ChildStart:
        tenant, ref = workflow.stored.tenant, workflow.plan.workflow.ref
        runs = target_ref(start.step)
        return cls(workflow, start, namespaces.of_child(tenant, ref, start.name, runs, start.route))


def are_placed(tx: Transaction, starts: Sequence[ChildStart]) -> bool:
    """Return True if the namespaces of all these starts are known from memory."""
    return all(namespaces.remembered(tx, start.namespace) is not None for start in starts)


async def start_children(tx: Transaction, starts: Sequence[ChildStart], new: NewState | None = None) -> None:
    """Start these children. With `new`, write that state first, in the same round trip."""
    if not starts:
        return
    refs = sorted({target_ref(start.step) for _, start, _ in starts})
    targets = await known_targets(tx, refs)
    if not await _start_as(tx, starts, targets, remembered(targets), new):
        # The first call has written `new` even though it started nothing, so this call writes no state.
        await _start_as(tx, starts, await current_targets(tx, refs), {}, None)


async def _start_as(
    tx: Transaction,
    starts: Sequence[ChildStart],
    targets: Mapping[str, Target],
    remembered: Mapping[str, int],
    new: NewState | None,
) -> bool:
    """Create the executions with these targets. Return False, and create none, if a `remembered` definition has
    changed."""
    created, errors = await new_children(tx, starts, targets)
    if new is None:
        started = await children.start(tx, created, remembered)
    else:
        started = await children.write_and_start(tx, new, created, remembered)
    if not started:
        return False
    for error, ids in errors.items():
        await executions.end(tx, ids, [REQUESTED], FAILED, orjson.loads(error)["message"], error)
    return True


async def new_children(
    tx: Transaction, starts: Sequence[ChildStart], targets: Mapping[str, Target]
) -> tuple[list[NewChild], dict[str, list[UUID]]]:
    """Return the executions to create, and the ids of those that fail at once, by error (JSON)."""
    schemas = await catalog.parameter_schemas(tx, [target.definition for target in targets.values()])
    ids = await place(tx, starts)
    now = await children.read_clock(tx) if any(start.delay for _, start, _ in starts) else None
    origins = {workflow.id: _origin(workflow) for workflow, _, _ in starts}
    created: list[NewChild] = []
    errors: dict[str, list[UUID]] = {}
    for workflow, start, namespace in starts:
        id, target, options = new_id(), targets.get(target_ref(start.step)), policies_of(start.step)
        parameters, error = child_parameters(
            start,
            target,
            schemas,
            workflow.stored.depth + 2,
            tx.settings.max_workflow_depth,
            tx.settings.payload_cap,
        )
        not_before = now + timedelta(seconds=start.delay) if now and start.delay else None
        if error is not None:
            errors.setdefault(orjson.dumps(error).decode(), []).append(id)
            not_before = executions.NEVER  # the execution must not start before it ends as failed
        created.append(
            NewChild(
                id,
                ids[namespace],
                target.definition if target is not None else workflow.stored.definition,
                parameters,
                orjson.dumps(options).decode() if options else None,
                origins[workflow.id],
                not_before,
                workflow.id,
                start.name,
                start.item,
            )
        )
    return created, errors


def _origin(workflow: OpenWorkflow) -> str:
    return orjson.dumps({"workflow": str(workflow.id), "depth": workflow.stored.depth + 1}).decode()


async def place(tx: Session | Transaction, starts: Sequence[ChildStart]) -> dict[Namespace, int]:
    """Return the ids of the namespaces of these starts."""
    needed: set[Namespace] = set()
    for workflow, start, namespace in starts:
        if namespace in needed:
            continue
        needed.add(namespace)
        if namespaces.remembered(tx, namespace) is None:
            for node in _nodes_ahead(workflow.plan, start.task):
                if node.step.route is None:  # a task's own route may depend on an expression
                    tenant, ref = workflow.stored.tenant, workflow.plan.workflow.ref
                    needed.add(namespaces.of_child(tenant, ref, node.name, target_ref(node.step)))
    return await namespaces.places(tx, needed)


def _nodes_ahead(plan: Plan, first: int) -> list[Node]:
    return [plan.graph[task] for task in range(first, min(first + PLACED_AHEAD, len(plan.graph)))]
