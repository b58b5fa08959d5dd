"""Races about slots: admission, waiting and promotion."""

from __future__ import annotations

from collections.abc import Sequence

from penstock import Limit
from penstock.client.limits import Limits
from penstock.language.loading import Definitions
from penstock.language.terms.ids import new_id
from penstock.service.assembly import Parts
from penstock.store.admission import unclaimed
from penstock.store.executions import executions
from penstock.store.outbox.queues import EXECUTION_REQUESTED
from penstock.store.session.database import Session
from penstock_executor.loops import fire_timers, reap_workers, recover_messages
from tests.interleavings.case import (
    ACTIONS,
    ALL,
    LIMITED,
    NEWEST,
    ONE,
    TWO,
    Case,
    completed_once,
    each_ran_once,
    one_execution,
    running,
)
from tests.interleavings.scene import Scene, soon
from tests.interleavings.stage import Work
from tests.interleavings.steps import takes_who_waits


async def two_admit_at_once(scene: Scene) -> Sequence[Work]:
    ids = await scene.request(3)
    return [scene.handles(EXECUTION_REQUESTED, ids[:2]), scene.handles(EXECUTION_REQUESTED, ids[2:])]


async def finish_and_admit(scene: Scene) -> Sequence[Work]:
    ids = await running(scene)
    new = await scene.request(2)
    return [scene.finishes(ids), scene.handles(EXECUTION_REQUESTED, new)]


async def finish_and_cancel_of_who_waits(scene: Scene) -> Sequence[Work]:
    ids = await running(scene)
    waiting = await scene.start(2)
    return [scene.finishes(ids), scene.cancels(waiting[:1])]


async def cancel_of_who_was_admitted_and_admit(scene: Scene) -> Sequence[Work]:
    ids = await scene.start(2)
    new = await scene.request(1)
    return [scene.cancels(ids[:1]), scene.handles(EXECUTION_REQUESTED, new)]


async def two_finish_and_one_admits(scene: Scene) -> Sequence[Work]:
    ids = await running(scene, number=2)
    await scene.start(1)
    new = await scene.request(1)
    return [scene.finishes(ids[:1]), scene.finishes(ids[1:]), scene.handles(EXECUTION_REQUESTED, new)]


async def both_limits(scene: Scene) -> Sequence[Work]:
    holds = await running(scene, "mail.send")
    waiting = await scene.start(2)
    new = await scene.request(1, "shop.refund")
    return [scene.finishes(holds), scene.cancels(waiting[:1]), scene.handles(EXECUTION_REQUESTED, new)]


async def taken_and_cancelled(scene: Scene) -> Sequence[Work]:
    ids = await running(scene)
    waiting = await scene.start(2)
    return [takes_who_waits(scene, ids), scene.cancels(waiting[:1])]


async def taken_twice(scene: Scene) -> Sequence[Work]:
    ids = await running(scene, number=2)
    await scene.start(3)
    new = await scene.request(1)
    ends = [takes_who_waits(scene, ids[:1]), takes_who_waits(scene, ids[1:])]
    return [*ends, scene.handles(EXECUTION_REQUESTED, new)]


async def taken_by_who_is_given_up(scene: Scene) -> Sequence[Work]:
    ids = await running(scene)
    await scene.start(2)
    work = takes_who_waits(scene, ids)
    await scene.session.fetch(
        "update process set beat_at = '-infinity' where id = $1 returning 1", scene.worker
    )
    await scene.hire(*(a.ref for a in ACTIONS))
    return [work, scene.turns(reap_workers.turn)]


async def the_limit_changes(scene: Scene) -> Sequence[Work]:
    ids = await running(scene)
    await scene.start(2)

    async def apply(session: Session) -> None:
        from penstock.operate.apply import apply as applied

        await applied(session, Definitions([Limit(2, ref="shop.one", scope="shop.charge")]).documents())

    return [scene.finishes(ids), apply]


async def restore_the_limit(scene: Scene) -> None:
    await scene.apply(ONE)


async def the_limit_goes(scene: Scene) -> Sequence[Work]:
    ids = await scene.request(2)

    async def remove(session: Session) -> None:
        await Limits(session, scene.parts.publisher).remove("shop.one")

    return [scene.handles(EXECUTION_REQUESTED, ids), remove]


async def nobody_was_left(scene: Scene) -> None:
    """Assert that all requested executions are scheduled or in line, without a loop that finds them."""
    rows = await scene.session.fetch("select id from execution where status = 'requested'")
    assert not rows
    await restore_the_limit(scene)


async def newer_ones_replace(scene: Scene) -> Sequence[Work]:
    await running(scene)
    new = await scene.request(2)
    return [
        scene.handles(EXECUTION_REQUESTED, new[:1]),
        scene.handles(EXECUTION_REQUESTED, new[1:]),
        scene.turns(fire_timers.turn),
    ]


async def lost_workers_give_back(scene: Scene) -> Sequence[Work]:
    ids = await running(scene)
    await scene.start(1)
    finish = scene.finishes(ids)
    await scene.session.fetch(
        "update process set beat_at = '-infinity' where id = $1 returning 1", scene.worker
    )
    await scene.hire(*(a.ref for a in ACTIONS))
    new = await scene.request(1)
    return [finish, scene.turns(reap_workers.turn), scene.handles(EXECUTION_REQUESTED, new)]


async def unclaimed_and_claim(scene: Scene) -> Sequence[Work]:
    ids = await scene.start(2)
    await scene.session.fetch(
        "update namespace set away_since = now() - interval '1 hour' where limits <> '{}' returning 1"
    )

    async def turn(parts: Parts, session: Session) -> None:
        async with session.transaction() as tx:
            await unclaimed.return_unclaimed(tx, 1.0, 500)

    return [scene.claims(ids[:1]), scene.turns(turn)]


async def workers_are_back(scene: Scene) -> None:
    """Note the workers, as the loop does."""
    await scene.session.fetch("select notice_workers()")


async def keyed_submits(scene: Scene) -> Sequence[Work]:
    def submit() -> Work:
        async def work(session: Session) -> None:
            submission = executions.Submission(
                new_id(),
                await scene._space("shop.charge"),
                scene._definitions["shop.charge"],
                "{}",
                "public",
                key="k",
                digest="d",
            )
            async for attempt in soon():
                with attempt:
                    async with session.transaction() as tx:
                        await executions.submit(tx, [submission])

        return work

    return [submit(), submit(), submit()]


async def two_limited_submits_and_an_end(scene: Scene) -> Sequence[Work]:
    """Each is admitted or put in line with its submit."""
    held = await running(scene)

    def submit() -> Work:
        async def work(session: Session) -> None:
            submission = executions.Submission(
                new_id(),
                await scene._space("shop.charge"),
                scene._definitions["shop.charge"],
                "{}",
                "public",
            )
            async for attempt in soon():
                with attempt:
                    async with session.transaction() as tx:
                        await executions.submit(tx, [submission])

        return work

    return [submit(), submit(), scene.finishes(held)]


async def restaged_and_handled(scene: Scene) -> Sequence[Work]:
    ids = await scene.request(2)
    await scene.session.fetch("delete from outbox")
    await scene.session.fetch("update execution set since = now() - interval '1 hour' returning 1")
    return [scene.turns(recover_messages.turn), scene.handles(EXECUTION_REQUESTED, ids)]


CASES = (
    Case("two limited submits and an end", two_limited_submits_and_an_end, each_ran_once, LIMITED),
    Case("two admit at once", two_admit_at_once, each_ran_once, LIMITED),
    Case("finish and admit", finish_and_admit, each_ran_once, LIMITED),
    Case("finish and cancel of who waits", finish_and_cancel_of_who_waits, completed_once, LIMITED),
    Case(
        "cancel of who was admitted and admit",
        cancel_of_who_was_admitted_and_admit,
        completed_once,
        LIMITED,
    ),
    Case("two finish and one admits", two_finish_and_one_admits, each_ran_once, (*ACTIONS, TWO)),
    Case("taken and cancelled", taken_and_cancelled, completed_once, LIMITED),
    Case("taken twice", taken_twice, each_ran_once, (*ACTIONS, TWO)),
    Case("taken by who is given up", taken_by_who_is_given_up, completed_once, LIMITED),
    Case("both limits", both_limits, completed_once, (*LIMITED, ALL)),
    Case("the limit changes", the_limit_changes, completed_once, LIMITED, restore_the_limit),
    Case("the limit goes", the_limit_goes, each_ran_once, LIMITED, nobody_was_left),
    Case("newer ones replace", newer_ones_replace, completed_once, (*ACTIONS, NEWEST)),
    Case("lost workers give back", lost_workers_give_back, completed_once, LIMITED),
    Case("unclaimed and claim", unclaimed_and_claim, completed_once, LIMITED, workers_are_back),
    Case("keyed submits", keyed_submits, one_execution, ACTIONS),
    Case("restaged and handled", restaged_and_handled, each_ran_once, ACTIONS),
)
