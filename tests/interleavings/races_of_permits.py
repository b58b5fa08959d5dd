"""Races about permits: of submits that take one with submits, renewals, withdrawals and the reaping of the worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from penstock.language.terms.ids import new_id
from penstock.store.executions import attempts, plain_executions
from penstock.store.executions.executions import Submission
from penstock.store.processes import permits
from penstock.store.session.database import Session
from penstock_executor.loops import reap_workers
from tests.interleavings.case import ACTIONS, Case, completed_once, count, each_ran_once
from tests.interleavings.scene import Scene, soon
from tests.interleavings.stage import Order, Work

REF, QUEUE, CHANNEL = "shop.charge", "work.default", "secret"
LOCK = 5309
HOLD = "update process set lock_key = $2, locked_at = clock_timestamp() where id = $1 returning 1"
OF_DEAD = """
select count(*) from execution e join process p on p.id = e.claim where p.state = 'dead' and e.status in ('running', 'canceling')
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


def submits(scene: Scene) -> Work:
    """Submit an execution as a client does, again if that fails."""
    id = new_id()

    async def work(session: Session) -> None:
        group = [Submission(id, scene._spaces[REF], scene._definitions[REF], '{"order": 1}', "public")]
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
                claims = await attempts.assigned(session, worker, -1.0)
        SEEN[scene.address] = {id for ids in claims.values() for id in ids}

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


async def each_ended_once(scene: Scene, order: Order) -> None:
    await completed_once(scene, order)
    await each_ran_once(scene, order)


CASES = (
    Case(
        "two submits and one permit", two_submits_and_one_permit, each_ended_once, ACTIONS, one_was_assigned
    ),
    Case("submit and renewal", submit_and_renewal, each_ended_once, ACTIONS, no_slot_was_promised_twice),
    Case("submit and withdrawal", submit_and_withdrawal, each_ended_once, ACTIONS, all_was_seen),
    Case("submit and reaping", submit_and_reaping, completed_once, ACTIONS, nothing_is_left_with_the_dead),
)
