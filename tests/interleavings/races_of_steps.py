"""Races of a worker that ends a task, advances the workflow and claims what follows, all in one transaction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from uuid import UUID

from penstock.store.outbox.queues import EXECUTION_COMPLETED
from penstock_executor.loops import reap_workers
from tests.interleavings.case import ACTIONS, Case, each_ran_once, join
from tests.interleavings.races_of_flows import joining, no_double_child, three_children
from tests.interleavings.scene import Scene
from tests.interleavings.stage import Order, Work
from tests.interleavings.steps import takes_read_steps, takes_remembered_steps, takes_steps

Takes = Callable[[Scene, Sequence[UUID]], Awaitable[Work]]

COMMAND = "select * from command_workflow($1, $2, null, null, 'ada', null)"


async def two_steps_of_a_join(takes: Takes, scene: Scene) -> Sequence[Work]:
    _, children = await joining(scene)
    return [await takes(scene, [child]) for child in children]


async def a_step_and_a_message(takes: Takes, scene: Scene) -> Sequence[Work]:
    _, children = await joining(scene)
    work = await takes(scene, children[1:])
    await scene.finish(children[:1])
    await scene.session.fetch("delete from outbox")
    return [scene.handles(EXECUTION_COMPLETED, children[:1]), work]


async def a_step_and_a_cancel(takes: Takes, scene: Scene) -> Sequence[Work]:
    id, children = await joining(scene)
    return [await takes(scene, children), scene.cancels([id, *children])]


async def a_step_and_a_sweep(takes: Takes, scene: Scene) -> Sequence[Work]:
    _, children = await joining(scene)
    work = await takes(scene, children)
    await scene.session.fetch(
        "update process set beat_at = '-infinity' where id = $1 returning 1", scene.worker
    )
    await scene.hire(*(a.ref for a in ACTIONS))
    return [work, scene.turns(reap_workers.turn)]


async def a_step_and_a_pause(takes: Takes, scene: Scene) -> Sequence[Work]:
    id, children = await joining(scene)
    return [await takes(scene, children), scene.calls(COMMAND, id, "pause")]


async def one_step_twice(takes: Takes, scene: Scene) -> Sequence[Work]:
    _, children = await joining(scene)
    return [await takes(scene, children) for _ in range(2)]


async def resume(scene: Scene) -> None:
    await scene.deliver()
    await scene.session.fetch(
        "select command_workflow(id, 'resume', null, null, 'ada', null) from execution where parent is null"
    )


async def ended_each_once(scene: Scene, order: Order) -> None:
    await three_children(scene, order)
    await each_ran_once(scene, order)


DEFINITIONS = (*ACTIONS, join)
TAKES: Mapping[str, Takes] = {
    "a step": takes_steps,
    "a read step": takes_read_steps,
    "a remembered step": takes_remembered_steps,
}
CASES = tuple(
    Case(f"{name} {rest}", partial(race, takes), check, DEFINITIONS, *after)
    for name, takes in TAKES.items()
    for rest, race, check, *after in (
        ("and another of a join", two_steps_of_a_join, ended_each_once),
        ("and a message", a_step_and_a_message, ended_each_once),
        ("and a cancel", a_step_and_a_cancel, no_double_child),
        ("and a sweep", a_step_and_a_sweep, three_children),
        ("and a pause", a_step_and_a_pause, ended_each_once, resume),
        ("twice", one_step_twice, ended_each_once),
    )
)
