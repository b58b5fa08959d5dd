"""The work of a worker at the end of tasks of workflows, as a part of a race."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import UUID

from penstock.advance.child_targets import current_targets
from penstock.advance.open_workflows import open_workflows
from penstock.advance.remembered import RememberedWorkflows, all_tasks
from penstock.engine import Plan
from penstock.engine.serialization import load_task_state
from penstock.language.policies.after_attempt import Ending
from penstock.language.workflows.model import Workflow
from penstock.service.heartbeat import Identity
from penstock.store.admission import namespaces
from penstock.store.definitions import catalog
from penstock.store.executions.attempts import AttemptEnd
from penstock.store.session.database import Session
from penstock_worker.claiming.claims import Claiming, Claims, OpenClaims
from penstock_worker.claiming.parked_queues import ParkedQueues
from penstock_worker.claiming.permits import Permits
from penstock_worker.ending.next_work import NextWork, Taking
from penstock_worker.ending.reports import finish
from penstock_worker.records.batches import Batches
from penstock_worker.records.executor_room import ExecutorRoom
from penstock_worker.records.slots import Slots
from penstock_worker.records.worker_state import Inbox
from tests.interleavings.scene import Scene, soon
from tests.interleavings.stage import Work

REMEMBERED = "select * from remembered_tasks($1, 64)"


def takes_steps(scene: Scene, ids: Sequence[UUID]) -> Work:
    """The ends of these tasks, and what follows them."""
    ends = [AttemptEnd(id, 1, Ending("completed")) for id in sorted(ids)]
    return _takes(scene, ends, RememberedWorkflows())


def takes_who_waits(scene: Scene, ids: Sequence[UUID]) -> Work:
    """The ends of these, and claims of what they let in."""
    ends = [AttemptEnd(id, 1, Ending("completed")) for id in sorted(ids)]
    return _takes(scene, ends, RememberedWorkflows(), let_in=True)


async def takes_remembered_steps(scene: Scene, ids: Sequence[UUID]) -> Work:
    """Take the same steps as a worker that remembers their workflows as they are now."""
    remembered = RememberedWorkflows()
    await _look_up(scene)
    rows = await scene.session.fetch(
        "select id, parent, task from execution where id = any($1) order by id", ids
    )
    async with scene.session.transaction() as tx:
        for workflow in await open_workflows(tx, sorted({row["parent"] for row in rows})):
            [stored] = await tx.fetch(REMEMBERED, workflow.id)
            tasks = zip(stored["tasks"], stored["records"], strict=True)
            all_tasks(workflow, {task: load_task_state(record) for task, record in tasks})
            remembered.keep(workflow, stored["version"])
    ends = [
        AttemptEnd(row["id"], 1, Ending("completed"), workflow=row["parent"], task=row["task"])
        for row in rows
    ]
    return _takes(scene, ends, remembered)


async def _look_up(scene: Scene) -> None:
    """All that a step may start is known from memory."""
    refs = [
        definition.ref
        for definition in scene.definitions
        if getattr(definition, "kind", "action") == "action"
    ]
    names = [
        namespaces.Namespace(f"public::{definition.ref.replace('.', '::')}::{node.name}", node.step.action)
        for definition in scene.definitions
        if isinstance(definition, Workflow)
        for node in Plan(definition).graph.nodes
        if node.step.action is not None
    ]
    await namespaces.places(scene.session, names)
    async with scene.session.transaction() as tx:
        targets = await current_targets(tx, refs)
        await catalog.parameter_schemas(tx, [target.definition for target in targets.values()])


def _takes(
    scene: Scene, ends: Sequence[AttemptEnd], remembered: RememberedWorkflows, *, let_in: bool = False
) -> Work:
    worker = Identity(scene.worker, "worker", "worker")

    async def work(session: Session) -> None:
        slots = Slots(100)
        room, queues, publisher = ExecutorRoom({}, 0), {"work.default"}, scene.parts.publisher
        batches = Batches(slots, room)
        claims = Claims(session, worker, scene.action, slots, room, batches, {})
        await claims.look_up(scene.known_definitions)
        permits = Permits(session, worker.id, slots, claims.assignable, behind=True)
        parked = ParkedQueues(queues)
        claiming = Claiming(
            claims,
            OpenClaims(),
            slots,
            room,
            batches,
            Inbox(),
            parked,
            permits,
            publisher,
            scene.parts.metrics,
        )
        next_work = NextWork(publisher, slots, queues, claiming, asyncio.Event())
        next_work.remembered, next_work.let_in = remembered, let_in
        session.cache.update(scene.session.cache)
        async for attempt in soon():
            with attempt:
                await finish(session, worker.id, ends, [], Taking(next_work))

    return work
