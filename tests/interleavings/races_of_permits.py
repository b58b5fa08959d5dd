"""Races about permits: of what takes one (submits, executors, timers, ends that free a slot) with each other, and with renewals,
withdrawals, cancellations, holds and the reaping of the worker."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from penstock.language.terms.ids import new_id
from penstock.store.admission import holds, namespaces
from penstock.store.executions import attempts, plain_executions
from penstock.store.executions.executions import Submission
from penstock.store.processes import permits
from penstock.store.session.database import Session
from penstock_executor.loops import apply_holds, reap_workers
from tests.interleavings.case import ACTIONS, LIMITED, Case, completed_once, count, each_ran_once
from tests.interleavings.scene import Scene, soon
from tests.interleavings.stage import Order, Work

REF, QUEUE, CHANNEL = "shop.charge", "work.default", "secret"
LOCK = 5309
HOLD = "update process set lock_key = $2, locked_at = clock_timestamp() where id = $1 returning 1"
OF_DEAD = """
select count(*) from execution e join process p on p.id = e.claim where p.state = 'dead' and e.status in ('running', 'canceling')
"""
UNHELD = """
select count(*) from execution e left join held_execution h on h.execution_id = e.id
where e.status = 'scheduled' or (e.status = 'requested') <> (h.execution_id is not null)
"""
HOLDERS: dict[str, Any] = {}
"""Connections that hold the lock of a worker, by the address of the database."""
SEEN: dict[str, set[UUID]] = {}
"""What a worker saw after it had withdrawn its permits."""


async def permitting(scene: Scene, most: int = 1) -> UUID:
    """Have the worker hold its lock, and place permits."""
    holder = HOLDERS.get(scene.address)
    if holder is None or holder.is_closed():
        holder = HOLDERS[scene.address] = await scene.parts.database.connect()
        await holder.fetch("select pg_advisory_lock($1)", LOCK)
    await scene.session.fetch(HOLD, scene.worker, LOCK)
    await scene.submit(REF)  # so that its namespace is known
    await scene.play_out()
    await _renew(scene, 1)
    await submits(scene)(scene.session)
    assert await count(scene, "select count(*) from claim where assigned") == 1, "the race is about nothing"
    await scene.session.fetch("delete from claim")
    await scene.play_out()
    await _renew(scene, most)
    return scene.worker


async def _renew(scene: Scene, limit: int) -> None:
    known = scene.known_definitions
    placed = await permits.renew(
        scene.session, scene.worker, QUEUE, CHANNEL, known, expected=0, limit=limit, behind=False
    )
    assert placed == (0, limit)


def submits(scene: Scene, ref: str = REF) -> Work:
    """Submit an execution as a client does, again if that fails."""
    id = new_id()

    async def work(session: Session) -> None:
        group = [Submission(id, scene._spaces[ref], scene._definitions[ref], '{"order": 1}', "public")]
        async for attempt in soon():
            with attempt:
                async with session.transaction() as tx:
                    await plain_executions.submit(tx, group)

    return work


async def two_submits_and_one_permit(scene: Scene) -> Sequence[Work]:
    await permitting(scene)
    return [submits(scene), submits(scene)]


async def one_was_assigned(scene: Scene) -> None:
    assert await count(scene, "select count(*) from claim where assigned") <= 1


async def submit_and_renewal(scene: Scene) -> Sequence[Work]:
    worker = await permitting(scene)

    async def renews(session: Session) -> None:
        async for attempt in soon():
            with attempt:
                known = scene.known_definitions
                await permits.renew(session, worker, QUEUE, CHANNEL, known, expected=1, limit=1, behind=False)

    return [submits(scene), renews]


async def no_slot_was_promised_twice(scene: Scene) -> None:
    assigned = await count(scene, "select count(*) from claim where assigned")
    assert assigned + await count(scene, "select count(*) from permit") <= 1


async def submit_and_withdrawal(scene: Scene) -> Sequence[Work]:
    """A worker drains: it withdraws its permits, and then looks for what it was assigned."""
    worker = await permitting(scene, most=2)
    SEEN.pop(scene.address, None)

    async def drains(session: Session) -> None:
        async for attempt in soon():
            with attempt:
                await permits.withdraw_all(session, worker)
        async for attempt in soon():
            with attempt:
                claims, _ = await attempts.assigned(session, worker, -1.0)
        SEEN[scene.address] = {row.execution_id for _, rows in claims.values() for row in rows}

    return [submits(scene), drains, submits(scene)]


async def all_was_seen(scene: Scene) -> None:
    rows = await scene.session.fetch("select executions from claim where assigned")
    assert {id for row in rows for id in row["executions"]} <= SEEN[scene.address]


async def submit_and_reaping(scene: Scene) -> Sequence[Work]:
    worker = await permitting(scene)
    await scene.session.fetch("update process set beat_at = '-infinity' where id = $1 returning 1", worker)
    await scene.hire(*(a.ref for a in ACTIONS))
    return [submits(scene), scene.turns(reap_workers.turn), submits(scene)]


async def nothing_is_left_with_the_dead(scene: Scene) -> None:
    assert await count(scene, OF_DEAD) == 0


async def requested(scene: Scene) -> UUID:
    """Insert a requested execution that is due."""
    [id] = await scene.request(1, REF)
    await scene.session.fetch("delete from outbox")
    return id


def schedules(scene: Scene, id: UUID) -> Work:
    """Schedule an execution as an executor does."""
    return scene.handles("execution.requested", [id])


async def executor_and_submit(scene: Scene) -> Sequence[Work]:
    id = await requested(scene)
    await permitting(scene)
    return [schedules(scene, id), submits(scene)]


async def two_executors_and_one_permit(scene: Scene) -> Sequence[Work]:
    ids = [await requested(scene) for _ in range(2)]
    await permitting(scene)
    return [schedules(scene, id) for id in ids]


async def same_message_twice(scene: Scene) -> Sequence[Work]:
    id = await requested(scene)
    await permitting(scene, most=2)
    return [schedules(scene, id), schedules(scene, id)]


async def executor_and_rollback(scene: Scene) -> Sequence[Work]:
    """An executor takes the permit, and its transaction fails."""
    ids = [await requested(scene) for _ in range(2)]
    await permitting(scene)

    async def fails(session: Session) -> None:
        with contextlib.suppress(ZeroDivisionError):
            async with session.transaction() as tx:
                await tx.fetch("select schedule_executions($1::uuid[])", ids[:1])
                raise ZeroDivisionError

    return [fails, schedules(scene, ids[1]), schedules(scene, ids[0])]


async def executor_and_cancel(scene: Scene) -> Sequence[Work]:
    id = await requested(scene)
    await permitting(scene)
    return [schedules(scene, id), scene.cancels([id])]


async def cancel_was_heard(scene: Scene) -> None:
    statuses = await scene.session.fetch("select distinct status from execution where finished_at is null")
    assert {row["status"] for row in statuses} <= {"canceling"}


async def executor_and_hold(scene: Scene) -> Sequence[Work]:
    id = await requested(scene)
    await permitting(scene)

    async def puts(session: Session) -> None:
        async for attempt in soon():
            with attempt:
                async with session.transaction() as tx:
                    await namespaces.lock_rules(tx)
                    await holds.put(tx, "action", REF, "why", "test", None)

    return [schedules(scene, id), puts, scene.turns(apply_holds.turn)]


async def held_execution_has_no_worker(scene: Scene) -> None:
    """Assert that the execution is either held or in the hands of a worker, and then release it."""
    await apply_holds.turn(scene.parts, scene.session)
    assert await count(scene, UNHELD) == 0
    async with scene.session.transaction() as tx:
        await namespaces.lock_rules(tx)
        await holds.release(tx, "action", REF, None)
    await apply_holds.turn(scene.parts, scene.session)


async def executor_and_reaping(scene: Scene) -> Sequence[Work]:
    ids = [await requested(scene) for _ in range(2)]
    worker = await permitting(scene)
    await scene.session.fetch("update process set beat_at = '-infinity' where id = $1 returning 1", worker)
    await scene.hire(*(a.ref for a in ACTIONS))
    return [schedules(scene, ids[0]), scene.turns(reap_workers.turn), schedules(scene, ids[1])]


async def promotion_and_submit(scene: Scene) -> Sequence[Work]:
    """An attempt ends and frees the slot of a limit, and another submit of another action wants the permit."""
    worker = await permitting(scene)
    await scene.session.fetch("delete from permit")
    [first, second] = await scene.start(2, REF)
    [claimed] = await scene.claim([first])
    assert claimed == first
    assert (
        await count(scene, "select count(*) from execution where id = $1 and status = 'queued'", second) == 1
    )
    await scene.session.fetch("delete from outbox")
    await _renew(scene, 1)
    assert scene.worker == worker
    return [scene.finishes([first]), submits(scene, "shop.refund")]


async def each_ended_once(scene: Scene, order: Order) -> None:
    await completed_once(scene, order)
    await each_ran_once(scene, order)


CASES = (
    Case("executor and submit, one permit", executor_and_submit, each_ended_once, ACTIONS, one_was_assigned),
    Case(
        "two executors and one permit",
        two_executors_and_one_permit,
        each_ended_once,
        ACTIONS,
        one_was_assigned,
    ),
    Case(
        "one message twice, and two permits", same_message_twice, each_ended_once, ACTIONS, one_was_assigned
    ),
    Case(
        "executor and rollback, one permit",
        executor_and_rollback,
        each_ended_once,
        ACTIONS,
        one_was_assigned,
    ),
    Case("assigned and cancel", executor_and_cancel, completed_once, ACTIONS, cancel_was_heard),
    Case("assigned and hold", executor_and_hold, each_ended_once, ACTIONS, held_execution_has_no_worker),
    Case(
        "assigned and reaping",
        executor_and_reaping,
        completed_once,
        ACTIONS,
        nothing_is_left_with_the_dead,
    ),
    Case(
        "promotion and submit, one permit", promotion_and_submit, each_ended_once, LIMITED, one_was_assigned
    ),
    Case(
        "two submits and one permit", two_submits_and_one_permit, each_ended_once, ACTIONS, one_was_assigned
    ),
    Case("submit and renewal", submit_and_renewal, each_ended_once, ACTIONS, no_slot_was_promised_twice),
    Case("submit and withdrawal", submit_and_withdrawal, each_ended_once, ACTIONS, all_was_seen),
    Case("submit and reaping", submit_and_reaping, completed_once, ACTIONS, nothing_is_left_with_the_dead),
)
