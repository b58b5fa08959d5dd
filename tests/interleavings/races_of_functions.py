"""Races around durable functions: records against the loss of the attempt, and sleeps against wake-ups."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import orjson

from penstock import DurableContext, action
from penstock.engine.durable.records import RUN, STARTED, ChildStart, Key, Record
from penstock.store.durable.steps import RECORD
from penstock.store.executions.attempts import FINISH
from penstock.store.outbox import queues
from penstock.store.session.database import Session
from penstock_executor.loops import reap_workers
from penstock_worker.durable.child_starts import ChildOrder, start_children
from tests.interleavings.case import ACTIONS, Case, count, running
from tests.interleavings.scene import Scene, soon
from tests.interleavings.stage import Order, Work


@action(pack="shop")
async def saga(ctx: DurableContext) -> None:
    """Do nothing here: its steps are played by hand."""


def records(scene: Scene, id: UUID, worker: UUID | None = None, attempt: int = 1) -> Work:
    """Its result is the number of the attempt."""
    return scene.calls(
        RECORD,
        worker or scene.worker,
        [id],
        [attempt],
        ["charge"],
        [1],
        [1],
        ["step"],
        ["completed"],
        [1],
        [0.0],
        [str(attempt)],
        [None],
        [0],
        [1],
        [None],
        [None],
    )


def suspends(scene: Scene, id: UUID, **awaits: object) -> Work:
    carried = {"awaits": {"children": [], "until": None, "signals": [], **awaits}}
    return scene.calls(
        FINISH, scene.worker, [id], [1], ["waiting"], [orjson.dumps(carried).decode()], [None], [0.0], [None], [None], [], []
    )  # fmt: skip


async def begun(scene: Scene) -> UUID:
    [id] = await running(scene, "shop.saga")
    return id


async def silent(scene: Scene) -> UUID:
    """Another worker, when the scene's own has not been heard of for long."""
    await scene.session.fetch(
        "update process set beat_at = '-infinity' where id = $1 returning 1", scene.worker
    )
    return await scene.hire(*(a.ref for a in DEFINITIONS))


async def a_record_and_a_sweep(scene: Scene) -> Sequence[Work]:
    id = await begun(scene)
    work = records(scene, id)
    await silent(scene)
    return [work, scene.turns(reap_workers.turn)]


async def taken_over(scene: Scene, id: UUID, other: UUID, session: Session) -> bool:
    """Let another worker take over, and return true if it has."""
    await scene.turns(reap_workers.turn)(session)
    await scene.handles(queues.EXECUTION_REQUESTED, [id])(session)
    return bool(await scene.claims([id], other)(session))


async def a_stale_attempt_and_a_new_one(scene: Scene) -> Sequence[Work]:
    id = await begun(scene)
    stale = records(scene, id)
    other = await silent(scene)

    async def takes_over(session: Session) -> None:
        if await taken_over(scene, id, other, session):
            await records(scene, id, other, attempt=2)(session)

    return [stale, takes_over]


async def a_stale_attempt_once_a_new_one_runs(scene: Scene) -> Sequence[Work]:
    """The instant of the case above in which only the number of the attempt keeps the stale one off."""
    id = await begun(scene)
    stale = records(scene, id)
    other = await silent(scene)
    assert await taken_over(scene, id, other, scene.session)
    return [stale, records(scene, id, other, attempt=2)]


async def one_was_recorded_before_the_other_began(scene: Scene, order: Order) -> None:
    await nothing_was_recorded_after_it_was_lost(scene, order)
    assert await count(scene, "select count(*) from step where result #>> '{}' = attempt::text") == 1


async def nothing_was_recorded_after_it_was_lost(scene: Scene, order: Order) -> None:
    late = """select count(*) from step s join history h on h.execution_id = s.execution_id and h.old = 'running'
        and h.new = 'requested' where s.attempt = 1 and s.at > h.at"""
    assert await count(scene, late) == 0


async def a_suspension_and_the_end_of_a_child(scene: Scene) -> Sequence[Work]:
    id = await begun(scene)
    [child] = await running(scene)
    await scene.session.fetch(
        "update execution set parent = $1, task = 'charge', item = 1 where id = $2 returning 1", id, child
    )

    async def ends(session: Session) -> None:
        await scene.finishes([child])(session)
        await scene.handles(queues.EXECUTION_COMPLETED, [child])(session)
        await session.fetch("delete from outbox where queue = $1", queues.EXECUTION_COMPLETED)

    return [suspends(scene, id, children=[str(child)]), ends]


async def a_later_suspension_and_the_end_of_a_child(scene: Scene) -> Sequence[Work]:
    """The function has read the end of the child already, and sleeps."""
    id = await begun(scene)
    [child] = await running(scene)
    await scene.session.fetch(
        "update execution set parent = $1, task = 'charge', item = 1 where id = $2 returning 1", id, child
    )
    await scene.finishes([child])(scene.session)
    await scene.session.fetch("delete from outbox where queue = $1", queues.EXECUTION_COMPLETED)
    until = "2000-01-01T00:00:00+00:00"  # due as soon as the race is over
    return [suspends(scene, id, until=until), scene.handles(queues.EXECUTION_COMPLETED, [child])]


async def only_its_timer_woke_it(scene: Scene, order: Order) -> None:
    wakes = await scene.session.fetch(
        "select reason from history where old = 'waiting' and new = 'requested'"
    )
    assert [row["reason"] for row in wakes] == ["the time until which the execution waited has come"]


async def a_suspension_and_a_signal(scene: Scene) -> Sequence[Work]:
    id = await begun(scene)
    tells = scene.calls("select * from signal_function($1, 'signal/go', '1')", id)
    return [suspends(scene, id, signals=[["signal/go", 1]]), tells]


async def a_suspension_and_a_cancel(scene: Scene) -> Sequence[Work]:
    id = await begun(scene)
    return [suspends(scene, id, signals=[["signal/go", 1]]), scene.cancels([id])]


async def a_cancel_and_a_timer(scene: Scene) -> Sequence[Work]:
    id = await begun(scene)
    await suspends(scene, id, until="2000-01-01T00:00:00+00:00")(scene.session)
    return [scene.calls("select * from fire_timers(10)"), scene.cancels([id])]


async def two_signals(scene: Scene) -> Sequence[Work]:
    id = await begun(scene)
    await suspends(scene, id, signals=[["signal/go", 2]])(scene.session)
    tells = "select * from signal_function($1, 'signal/go', $2)"
    return [scene.calls(tells, id, "1"), scene.calls(tells, id, "2")]


async def a_second_cancel_and_the_end_of_a_child(scene: Scene) -> Sequence[Work]:
    """Both clean up. The end of the child locks the child, and then its function."""
    id = await begun(scene)
    [child] = await running(scene, "shop.saga")
    await scene.session.fetch(
        "update execution set parent = $1, task = 'charge', item = 1 where id = $2 returning 1", id, child
    )
    asked = "update execution set ends_as = 'cancelled' where id = any($1::uuid[]) returning 1"
    await scene.session.fetch(asked, [id, child])

    async def ends(session: Session) -> None:
        await scene.finishes([child])(session)
        await scene.handles(queues.EXECUTION_COMPLETED, [child])(session)
        await session.fetch("delete from outbox where queue = $1", queues.EXECUTION_COMPLETED)

    return [scene.cancels([id], by_hand=True), ends]


async def two_cancels_of_a_function_with_a_child(scene: Scene) -> Sequence[Work]:
    """The second request reaches the child, whichever of the two comes first."""
    id = await begun(scene)
    [child] = await running(scene, "shop.saga")
    await scene.session.fetch(
        "update execution set parent = $1, task = 'charge', item = 1 where id = $2 returning 1", id, child
    )
    await suspends(scene, id, children=[str(child)])(scene.session)
    return [scene.cancels([id], by_hand=True), scene.cancels([id], by_hand=True)]


async def the_child_was_asked(scene: Scene, order: Order) -> None:
    assert await count(scene, "select count(*) from execution where ends_as = 'cancelled'") == 2


async def a_start_of_a_child_and_a_second_cancel(scene: Scene) -> Sequence[Work]:
    """The function starts a child while it cleans up."""
    id = await begun(scene)
    await scene.session.fetch("update execution set ends_as = 'cancelled' where id = $1 returning 1", id)

    record = Record(Key("charge", 1), 1, RUN, STARTED)
    order = ChildOrder(id, 1, "public", "shop.saga", ChildStart(record, "shop.saga", {}))

    async def starts(session: Session) -> None:
        async for attempt in soon():
            with attempt:
                await start_children(session, scene.worker, [order])

    return [starts, scene.cancels([id], by_hand=True)]


async def no_child_goes_on(scene: Scene, order: Order) -> None:
    """The function has started no child, or the request has reached the child, which had not begun."""
    assert await count(scene, "select count(*) from execution where status = 'completed'") == 0


async def both_have_ended(scene: Scene, order: Order) -> None:
    """The worker was told to end the function at once. Its child has ended, by itself or with it."""
    assert (
        await count(scene, "select count(*) from execution where status = 'cancelled' and parent is null")
        == 1
    )
    assert await count(scene, "select count(*) from execution where finished_at is not null") == 2


async def it_went_on(scene: Scene, order: Order) -> None:
    assert await count(scene, "select count(*) from suspended") == 0
    assert await count(scene, "select count(*) from history where old = 'waiting' and new = 'requested'") >= 1


async def it_was_told(scene: Scene, order: Order) -> None:
    """It goes on once more, to clean up, whether it was asleep or not."""
    asked = "select count(*) from execution where ends_as = 'cancelled' and reason = 'asked'"
    assert await count(scene, asked) == 1
    assert await count(scene, "select count(*) from suspended") == 0


DEFINITIONS = (*ACTIONS, saga)
CASES = (
    Case("a record and a sweep", a_record_and_a_sweep, nothing_was_recorded_after_it_was_lost, DEFINITIONS),
    Case(
        "a stale attempt and a new one",
        a_stale_attempt_and_a_new_one,
        one_was_recorded_before_the_other_began,
        DEFINITIONS,
    ),
    Case(
        "a stale attempt once a new one runs",
        a_stale_attempt_once_a_new_one_runs,
        one_was_recorded_before_the_other_began,
        DEFINITIONS,
    ),
    Case("a suspension and the end of a child", a_suspension_and_the_end_of_a_child, it_went_on, DEFINITIONS),
    Case(
        "a later suspension and the end of a child",
        a_later_suspension_and_the_end_of_a_child,
        only_its_timer_woke_it,
        DEFINITIONS,
    ),
    Case("a suspension and a signal", a_suspension_and_a_signal, it_went_on, DEFINITIONS),
    Case("a suspension and a cancel", a_suspension_and_a_cancel, it_was_told, DEFINITIONS),
    Case("a cancel and a timer", a_cancel_and_a_timer, it_was_told, DEFINITIONS),
    Case(
        "a second cancel and the end of a child",
        a_second_cancel_and_the_end_of_a_child,
        both_have_ended,
        DEFINITIONS,
    ),
    Case(
        "two cancels of a function with a child",
        two_cancels_of_a_function_with_a_child,
        the_child_was_asked,
        DEFINITIONS,
    ),
    Case(
        "a start of a child and a second cancel",
        a_start_of_a_child_and_a_second_cancel,
        no_child_goes_on,
        DEFINITIONS,
    ),
    Case("two signals", two_signals, it_went_on, DEFINITIONS),
)
