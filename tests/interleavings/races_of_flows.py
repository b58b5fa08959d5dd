"""Races about events, schedules, inquiries and workflows."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from penstock.language.terms.ids import new_id
from penstock.service.assembly import Parts
from penstock.store.events import events
from penstock.store.outbox.queues import (
    EVENT_CREATED,
    EXECUTION_COMPLETED,
    EXECUTION_REQUESTED,
    WORKFLOW_STARTED,
)
from penstock.store.session.database import Session
from penstock_executor.loops import fire_schedules
from tests.interleavings.case import (
    ACTIONS,
    Case,
    completed_once,
    count,
    join,
    on_placed,
    one_execution,
    placed,
    running,
    ticking,
)
from tests.interleavings.scene import Scene
from tests.interleavings.stage import Order, Work


async def one_event_twice(scene: Scene) -> Sequence[Work]:
    id = new_id()
    async with scene.session.transaction() as tx:
        await events.store(
            tx, [events.NewEvent("shop.placed", "public", "{}", "x", "m", "d", id=id)], matched=False
        )
    await scene.session.fetch("delete from outbox")
    return [scene.handles(EVENT_CREATED, [id]), scene.handles(EVENT_CREATED, [id])]


async def fires_at_once(scene: Scene) -> Sequence[Work]:
    await scene.session.fetch(
        "update schedule set since = since - interval '1 hour', next_due = clock_timestamp() - interval '1 ms' returning 1"
    )

    async def turn(parts: Parts, session: Session) -> None:
        await fire_schedules.fire(parts, session)

    return [scene.turns(turn), scene.turns(turn)]


async def one_execution_a_fire(scene: Scene, order: Order) -> None:
    fires = await count(scene, "select count(*) from fire where status = 'created'")
    assert fires == await count(scene, "select count(*) from execution") > 0


async def answer_timeout_and_cancel(scene: Scene) -> Sequence[Work]:
    ids = await running(scene, "shop.ask")
    await scene.finish(ids, "waiting")
    await scene.session.fetch("update inquiry set due_at = now() - interval '1 s' returning 1")
    answer = scene.calls("select * from answer_inquiry($1, 'true', 'ada')", ids[0])
    return [answer, scene.calls("select * from expire_inquiries(10)"), scene.cancels(ids)]


async def joining(scene: Scene) -> tuple[UUID, list[UUID]]:
    """A workflow of which two tasks run."""
    [id] = await scene.submit("shop.join")
    await scene.deliver(EXECUTION_REQUESTED)
    await scene.deliver(WORKFLOW_STARTED)
    rows = await scene.session.fetch("select id from execution where parent = $1 order by task", id)
    children = [row["id"] for row in rows]
    await scene.session.fetch("delete from outbox")
    assert len(await scene.claims(children)(scene.session)) == 2
    return id, children


async def both_ends_of_a_join(scene: Scene) -> Sequence[Work]:
    _, children = await joining(scene)
    for child in children:
        await scene.finish([child])
    await scene.session.fetch("delete from outbox")
    return [scene.handles(EXECUTION_COMPLETED, [child]) for child in children]


async def three_children(scene: Scene, order: Order) -> None:
    rows = await scene.session.fetch(
        "select task, count(*) from execution where parent is not null group by 1 order by 1"
    )
    assert [tuple(row) for row in rows] == [("both", 1), ("left", 1), ("right", 1)]
    assert await count(scene, "select count(*) from execution where status = 'completed'") == 4


async def one_end_three_times(scene: Scene) -> Sequence[Work]:
    _, children = await joining(scene)
    for child in children:
        await scene.finish([child])
    await scene.session.fetch("delete from outbox")
    return [
        scene.handles(EXECUTION_COMPLETED, children),
        scene.handles(EXECUTION_COMPLETED, children[:1]),
        scene.handles(EXECUTION_COMPLETED, children),
    ]


async def a_start_twice(scene: Scene) -> Sequence[Work]:
    [id] = await scene.submit("shop.join")
    await scene.deliver(EXECUTION_REQUESTED)
    await scene.session.fetch("delete from outbox")
    return [scene.handles(WORKFLOW_STARTED, [id]), scene.handles(WORKFLOW_STARTED, [id])]


async def a_workflow_is_cancelled(scene: Scene) -> Sequence[Work]:
    id, children = await joining(scene)
    await scene.finish(children[:1])
    await scene.session.fetch("delete from outbox")
    return [
        scene.cancels([id]),
        scene.handles(EXECUTION_COMPLETED, children[:1]),
        scene.finishes(children[1:]),
    ]


async def no_double_child(scene: Scene, order: Order) -> None:
    children = "select count(*) from execution where parent is not null group by parent, task, item having count(*) > 1"
    assert await scene.session.fetch(children) == []


CASES = (
    Case("one event twice", one_event_twice, one_execution, (*ACTIONS, placed, on_placed)),
    Case("fires at once", fires_at_once, one_execution_a_fire, (*ACTIONS, ticking)),
    Case("answer, timeout and cancel", answer_timeout_and_cancel, completed_once, ACTIONS),
    Case("both ends of a join", both_ends_of_a_join, three_children, (*ACTIONS, join)),
    Case("one end three times", one_end_three_times, three_children, (*ACTIONS, join)),
    Case("a start twice", a_start_twice, three_children, (*ACTIONS, join)),
    Case("a workflow is cancelled", a_workflow_is_cancelled, no_double_child, (*ACTIONS, join)),
)
