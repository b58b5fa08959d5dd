"""Races of a worker that ends a task, advances the workflow and claims what follows, all in one transaction."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.store.outbox.queues import EXECUTION_COMPLETED
from penstock_executor.loops import reap_workers
from tests.interleavings.case import ACTIONS, Case, each_ran_once, join
from tests.interleavings.races_of_flows import joining, no_double_child, three_children
from tests.interleavings.scene import Scene
from tests.interleavings.stage import Order, Work
from tests.interleavings.steps import takes_remembered_steps, takes_steps

COMMAND = "select * from command_workflow($1, $2, null, null, 'ada', null)"


async def two_steps_of_a_join(scene: Scene) -> Sequence[Work]:
    _, children = await joining(scene)
    return [takes_steps(scene, [child]) for child in children]


async def a_step_and_a_message(scene: Scene) -> Sequence[Work]:
    _, children = await joining(scene)
    await scene.finish(children[:1])
    await scene.session.fetch("delete from outbox")
    return [scene.handles(EXECUTION_COMPLETED, children[:1]), takes_steps(scene, children[1:])]


async def a_step_and_a_cancel(scene: Scene) -> Sequence[Work]:
    id, children = await joining(scene)
    return [takes_steps(scene, children), scene.cancels([id, *children])]


async def a_step_and_a_sweep(scene: Scene) -> Sequence[Work]:
    _, children = await joining(scene)
    work = takes_steps(scene, children)
    await scene.session.fetch(
        "update process set beat_at = '-infinity' where id = $1 returning 1", scene.worker
    )
    await scene.hire(*(a.ref for a in ACTIONS))
    return [work, scene.turns(reap_workers.turn)]


async def a_step_and_a_pause(scene: Scene) -> Sequence[Work]:
    id, children = await joining(scene)
    return [takes_steps(scene, children), scene.calls(COMMAND, id, "pause")]


async def two_remembered_steps(scene: Scene) -> Sequence[Work]:
    _, children = await joining(scene)
    return [await takes_remembered_steps(scene, [child]) for child in children]


async def a_remembered_step_and_a_message(scene: Scene) -> Sequence[Work]:
    _, children = await joining(scene)
    remembered = await takes_remembered_steps(scene, children[1:])
    await scene.finish(children[:1])
    await scene.session.fetch("delete from outbox")
    return [scene.handles(EXECUTION_COMPLETED, children[:1]), remembered]


async def a_remembered_step_and_a_cancel(scene: Scene) -> Sequence[Work]:
    id, children = await joining(scene)
    return [await takes_remembered_steps(scene, children), scene.cancels([id, *children])]


async def a_remembered_step_and_a_sweep(scene: Scene) -> Sequence[Work]:
    _, children = await joining(scene)
    work = await takes_remembered_steps(scene, children)
    await scene.session.fetch(
        "update process set beat_at = '-infinity' where id = $1 returning 1", scene.worker
    )
    await scene.hire(*(a.ref for a in ACTIONS))
    return [work, scene.turns(reap_workers.turn)]


async def a_remembered_step_and_a_pause(scene: Scene) -> Sequence[Work]:
    id, children = await joining(scene)
    return [await takes_remembered_steps(scene, children), scene.calls(COMMAND, id, "pause")]


async def one_remembered_step_twice(scene: Scene) -> Sequence[Work]:
    _, children = await joining(scene)
    return [await takes_remembered_steps(scene, children) for _ in range(2)]


async def resume(scene: Scene) -> None:
    await scene.deliver()
    await scene.session.fetch(
        "select command_workflow(id, 'resume', null, null, 'ada', null) from execution where parent is null"
    )


async def ended_each_once(scene: Scene, order: Order) -> None:
    await three_children(scene, order)
    await each_ran_once(scene, order)


DEFINITIONS = (*ACTIONS, join)
CASES = (
    Case("two steps of a join", two_steps_of_a_join, ended_each_once, DEFINITIONS),
    Case("a step and a message", a_step_and_a_message, ended_each_once, DEFINITIONS),
    Case("a step and a cancel", a_step_and_a_cancel, no_double_child, DEFINITIONS),
    Case("a step and a sweep", a_step_and_a_sweep, three_children, DEFINITIONS),
    Case("a step and a pause", a_step_and_a_pause, ended_each_once, DEFINITIONS, resume),
    Case("two remembered steps", two_remembered_steps, ended_each_once, DEFINITIONS),
    Case("a remembered step and a message", a_remembered_step_and_a_message, ended_each_once, DEFINITIONS),
    Case("a remembered step and a cancel", a_remembered_step_and_a_cancel, no_double_child, DEFINITIONS),
    Case("a remembered step and a sweep", a_remembered_step_and_a_sweep, three_children, DEFINITIONS),
    Case(
        "a remembered step and a pause", a_remembered_step_and_a_pause, ended_each_once, DEFINITIONS, resume
    ),
    Case("one remembered step twice", one_remembered_step_twice, ended_each_once, DEFINITIONS),
)
