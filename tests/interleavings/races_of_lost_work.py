"""Races about the place of an attempt that is lost with its worker: none of those behind it gets the slot that it held."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from penstock.store.outbox.queues import EXECUTION_REQUESTED
from penstock.store.session.database import Session
from penstock_executor.loops import fire_timers, reap_workers, recover_messages
from tests.interleavings.case import ACTIONS, ALL, LIMITED, Case, completed_once, count, running
from tests.interleavings.scene import Scene
from tests.interleavings.stage import Order, Work

OVERTAKEN = """
with moves as (select row_number() over (order by at, ctid) as nth, execution_id, old, new from history),
lost as (
    select m.execution_id, m.nth as first, coalesce(
        (select min(n.nth) from moves n
         where n.execution_id = m.execution_id and n.nth > m.nth and n.new not in ('requested', 'queued')),
        9223372036854775807) as last
    from moves m where m.old = 'running' and m.new = 'requested')
select count(*) from lost l join moves o on o.nth between l.first and l.last and o.execution_id <> l.execution_id
where o.new = 'scheduled'
"""
"""Counts executions that were admitted while a lost attempt, which held the only slot, was not in its place again."""


async def lost_with_its_worker(scene: Scene) -> list[UUID]:
    """Start an execution, lose the worker that runs it, and let a younger one wait behind it."""
    ids = await running(scene)
    await scene.start(1)
    await scene.session.fetch(
        "update process set beat_at = '-infinity' where id = $1 returning 1", scene.worker
    )
    return ids


async def hire_another(scene: Scene) -> None:
    await scene.hire(*(a.ref for a in ACTIONS))


async def recovery_and_admission(scene: Scene) -> Sequence[Work]:
    await lost_with_its_worker(scene)
    await hire_another(scene)
    new = await scene.request(1)
    return [
        scene.turns(reap_workers.turn),
        scene.handles(EXECUTION_REQUESTED, new),
        scene.turns(reap_workers.turn),
    ]


async def recovery_and_promotion(scene: Scene) -> Sequence[Work]:
    """No worker has lived meanwhile. Its successor is noticed, which wakes the line, while its work is recovered."""
    await lost_with_its_worker(scene)
    await scene.session.fetch("update process set state = 'draining' where id = $1 returning 1", scene.worker)
    await scene.session.fetch("select notice_workers()")
    await hire_another(scene)

    async def wake(session: Session) -> None:
        await scene.calls("select notice_workers()")(session)
        await scene.turns(fire_timers.turn)(session)

    return [scene.turns(reap_workers.turn), wake]


async def recovery_and_cancel(scene: Scene) -> Sequence[Work]:
    execution = await lost_with_its_worker(scene)
    await hire_another(scene)
    return [scene.turns(reap_workers.turn), scene.cancels(execution)]


async def recovery_and_finish(scene: Scene) -> Sequence[Work]:
    execution = await lost_with_its_worker(scene)
    finish = scene.finishes(execution)
    await hire_another(scene)
    new = await scene.request(1)
    return [scene.turns(reap_workers.turn), finish, scene.handles(EXECUTION_REQUESTED, new)]


async def recovery_under_two_limits(scene: Scene) -> Sequence[Work]:
    """The one that waits is of another action, and waits for the slot that all actions share."""
    execution = await running(scene)
    await scene.start(1, "shop.refund")
    finish = scene.finishes(execution)
    await scene.session.fetch(
        "update process set beat_at = '-infinity' where id = $1 returning 1", scene.worker
    )
    await hire_another(scene)
    new = await scene.request(1, "mail.send")
    return [scene.turns(reap_workers.turn), scene.handles(EXECUTION_REQUESTED, new), finish]


async def restored_claim_and_finish(scene: Scene) -> Sequence[Work]:
    """A fault has deleted the claim. The worker lives, and names the attempt in its heartbeats until it ends it."""
    execution = await running(scene)
    await scene.session.fetch("delete from claim")
    beat = scene.calls("select from beat($1, $2, array[1], interval '1 day')", scene.worker, execution)

    async def restore(session: Session) -> None:
        await scene.turns(recover_messages.turn)(session)
        await scene.calls("update claim set claimed_at = claimed_at - interval '1 hour'")(session)
        await beat(session)

    return [restore, scene.finishes(execution), restore]


async def never_lost(scene: Scene, order: Order) -> None:
    await completed_once(scene, order)
    assert await count(scene, "select count(*) from attempt where outcome = 'lost'") == 0


async def none_overtakes(scene: Scene, order: Order) -> None:
    await completed_once(scene, order)
    assert await count(scene, OVERTAKEN) == 0


def case(name: str, prepare: Any, definitions: tuple[Any, ...] = LIMITED) -> Case:
    return Case(name, prepare, none_overtakes, definitions)


CASES = (
    case("recovery and admission", recovery_and_admission),
    case("recovery and promotion", recovery_and_promotion),
    case("recovery and cancel of what is lost", recovery_and_cancel),
    case("recovery and finish of what is lost", recovery_and_finish),
    case("recovery under two limits", recovery_under_two_limits, (*LIMITED, ALL)),
    Case("restored claim and finish", restored_claim_and_finish, never_lost, LIMITED),
)
