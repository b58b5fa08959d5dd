"""Races of sessions that schedule, claim, end and take back an execution."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.store.outbox.queues import EXECUTION_REQUESTED
from penstock_executor.loops import reap_workers
from tests.interleavings.case import ACTIONS, LIMITED, Case, completed_once, each_ran_once, running
from tests.interleavings.scene import Scene
from tests.interleavings.stage import Order, Work


async def one_message_twice(scene: Scene) -> Sequence[Work]:
    ids = await scene.request(2)
    return [scene.handles(EXECUTION_REQUESTED, ids), scene.handles(EXECUTION_REQUESTED, ids)]


async def one_envelope_twice(scene: Scene) -> Sequence[Work]:
    ids = await scene.start(2)
    other = await scene.hire(*(a.ref for a in ACTIONS))
    return [scene.claims(ids), scene.claims(ids, other)]


async def claimed_once(scene: Scene, order: Order) -> None:
    claimed = [id for answer in order.answers for id in answer or ()]
    assert len(claimed) == len(set(claimed)), "claimed by both"
    rows = await scene.session.fetch("select count(*) from attempt where outcome = 'lost'")
    assert rows[0][0] == 0


async def claim_and_cancel(scene: Scene) -> Sequence[Work]:
    ids = await scene.start(2)
    return [scene.claims(ids), scene.cancels(ids)]


async def the_cancel_was_heard(scene: Scene) -> None:
    """Assert that every open execution has heard of the cancellation, in any order."""
    rows = await scene.session.fetch(
        "select distinct status from execution where status not in ('canceling', 'cancelled')"
    )
    assert not rows, rows


async def finish_and_sweep(scene: Scene) -> Sequence[Work]:
    ids = await running(scene, number=2)
    work = scene.finishes(ids)
    await scene.session.fetch(
        "update process set beat_at = '-infinity' where id = $1 returning 1", scene.worker
    )
    await scene.hire(*(a.ref for a in ACTIONS))
    return [work, scene.turns(reap_workers.turn)]


async def finish_and_cancel(scene: Scene) -> Sequence[Work]:
    ids = await running(scene)
    return [scene.finishes(ids), scene.cancels(ids)]


async def retry_and_cancel(scene: Scene) -> Sequence[Work]:
    ids = await running(scene)
    return [scene.finishes(ids, "requested"), scene.cancels(ids)]


async def two_sweeps_and_a_beat(scene: Scene) -> Sequence[Work]:
    ids = await running(scene, number=2)
    worker = scene.worker
    await scene.session.fetch("update process set beat_at = '-infinity' where id = $1 returning 1", worker)
    await scene.hire(*(a.ref for a in ACTIONS))
    beat = scene.calls(
        "select * from beat($1, $2::uuid[], $3::smallint[], interval '1 hour')", worker, ids, [1, 1]
    )
    return [scene.turns(reap_workers.turn), scene.turns(reap_workers.turn), beat]


CASES = (
    Case("one message twice", one_message_twice, each_ran_once, ACTIONS),
    Case("one message twice under a limit", one_message_twice, each_ran_once, LIMITED),
    Case("one envelope twice", one_envelope_twice, claimed_once, ACTIONS),
    Case("claim and cancel", claim_and_cancel, completed_once, ACTIONS, the_cancel_was_heard),
    Case("finish and sweep", finish_and_sweep, completed_once, ACTIONS),
    Case("finish and cancel", finish_and_cancel, completed_once, LIMITED),
    Case("retry and cancel", retry_and_cancel, completed_once, LIMITED),
    Case("two sweeps and a beat", two_sweeps_and_a_beat, completed_once, LIMITED[:4]),
)
