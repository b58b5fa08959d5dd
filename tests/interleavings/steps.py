"""The work of a worker at the end of tasks of workflows, as a part of a race."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import UUID

from penstock.advance.child_targets import current_targets
from penstock.advance.remembered_workflows import RememberedWorkflows
from penstock.engine import Plan
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


async def takes_steps(scene: Scene, ids: Sequence[UUID]) -> Work:
    """The ends of these tasks, and what follows them, by a worker that knows neither their workflows nor the targets."""
    return _takes(scene, await _ends(scene, ids), RememberedWorkflows())


def takes_who_waits(scene: Scene, ids: Sequence[UUID]) -> Work:
    """The ends of these, and claims of what they let in."""
    ends = [AttemptEnd(id, 1, Ending("completed")) for id in sorted(ids)]
    return _takes(scene, ends, RememberedWorkflows(), let_in=True)


async def takes_read_steps(scene: Scene, ids: Sequence[UUID]) -> Work:
    """Take the same steps as a worker that knows the targets, and reads the workflows when the tasks end."""
    await _look_up(scene)
    return await takes_steps(scene, ids)


async def takes_remembered_steps(scene: Scene, ids: Sequence[UUID]) -> Work:
    """Take the same steps as a worker that remembers their workflows as they are now."""
    await _look_up(scene)
    remembered = RememberedWorkflows()
    ends = await _ends(scene, ids)
    await remembered.read(scene.session, {end.workflow for end in ends if end.workflow is not None})
    return _takes(scene, ends, remembered)


async def _ends(scene: Scene, ids: Sequence[UUID]) -> list[AttemptEnd]:
    rows = await scene.session.fetch(
        "select id, parent, task from execution where id = any($1) order by id", ids
    )
    return [
        AttemptEnd(row["id"], 1, Ending("completed"), workflow=row["parent"], task=row["task"])
        for row in rows
    ]


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
