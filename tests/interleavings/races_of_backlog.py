"""Races on the backlog of an ordered route: of claims with claims, cancellations and new priorities. The claims have all messages
of the route, so that a turn that is lost leaves an execution behind."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from penstock.language.terms.ids import new_id
from penstock.store.admission import holds as stored_holds
from penstock.store.admission import namespaces
from penstock.store.executions import executions
from penstock.store.executions.executions import Submission
from penstock.store.session.database import Session
from penstock_executor.loops import apply_holds
from tests.interleavings.case import ACTIONS, Case, completed_once, count, each_ran_once
from tests.interleavings.scene import Scene, soon
from tests.interleavings.stage import Order, Work

REF = "shop.charge"


async def waiting(scene: Scene, *priorities: int) -> list[UUID]:
    """Submit executions with these priorities, and take their messages off the route."""
    ids = [new_id() for _ in priorities]
    await scene._space(REF)
    for id, priority in zip(ids, priorities, strict=True):
        await submits(scene, id, priority)(scene.session)
    await scene.session.fetch("delete from outbox")
    return ids


def submits(scene: Scene, id: UUID, priority: int) -> Work:
    space, definition = scene._spaces[REF], scene._definitions[REF]

    async def work(session: Session) -> None:
        async for attempt in soon():
            with attempt:
                async with session.transaction() as tx:
                    submission = Submission(
                        id, space, definition, '{"order": 1}', "public", priority=priority
                    )
                    await executions.submit(tx, [submission])

    return work


def prioritizes(id: UUID, priority: int) -> Work:
    async def work(session: Session) -> None:
        async for attempt in soon():
            with attempt:
                async with session.transaction() as tx:
                    await executions.set_priority(tx, id, priority)

    return work


async def two_claims_of_one_execution(scene: Scene) -> Sequence[Work]:
    [id] = await waiting(scene, 9)
    other = await scene.hire(*(a.ref for a in ACTIONS))
    return [scene.claims([id], take=1), scene.claims([id], other, take=1)]


async def two_claims_of_two_executions(scene: Scene) -> Sequence[Work]:
    low, high = await waiting(scene, -1, 9)
    other = await scene.hire(*(a.ref for a in ACTIONS))
    return [scene.claims([low], take=1), scene.claims([high], other, take=1)]


async def each_claimed_once(scene: Scene, order: Order) -> None:
    claimed = [id for answer in order.answers for id in answer or ()]
    assert len(claimed) == len(set(claimed)), "claimed by both"
    await each_ran_once(scene, order)


async def each_took_one(scene: Scene, order: Order) -> None:
    assert [len(answer) for answer in order.answers] == [1, 1]
    await each_claimed_once(scene, order)


async def claim_and_cancel(scene: Scene) -> Sequence[Work]:
    low, high = await waiting(scene, -1, 9)
    return [scene.claims([low], take=1), scene.cancels([high]), scene.claims([high], take=1)]


async def claim_and_new_priority(scene: Scene) -> Sequence[Work]:
    low, high = await waiting(scene, -1, 9)
    return [scene.claims([high], take=1), prioritizes(low, 12), scene.claims([low], take=1)]


async def claim_and_first_priority(scene: Scene) -> Sequence[Work]:
    """A route becomes ordered while a worker claims from it."""
    first, second = await waiting(scene, 0, 0)
    return [scene.claims([first], take=1), prioritizes(second, 3), scene.claims([second], take=1)]


async def claim_and_end_of_order(scene: Scene) -> Sequence[Work]:
    """The order of a route ends while an execution with a priority comes."""
    [plain] = await waiting(scene, 0)
    [first] = await waiting(scene, 3)
    assert await scene.claims([first], take=1)(scene.session) == [first]
    await scene.finish([first])
    await scene.session.fetch("delete from outbox")
    tidies = scene.calls("select ended from tidy_backlog(interval '0', 100)")
    return [scene.claims([plain], take=1), submits(scene, new_id(), 9), tidies]


async def claim_and_hold(scene: Scene) -> Sequence[Work]:
    """An execution that is claimed before the hold runs. Each other execution is held."""
    ids = await waiting(scene, 0, 0)

    async def holds(session: Session) -> None:
        async for attempt in soon():
            with attempt:
                async with session.transaction() as tx:
                    await namespaces.lock_rules(tx)
                    await stored_holds.put(tx, "pack", "shop", None, "ada", None)

    return [scene.claims(ids, take=1), holds, scene.claims(ids, take=1)]


async def held_work_is_not_claimed(scene: Scene) -> None:
    rows = await scene.session.fetch("select id from execution where status = 'scheduled'")
    assert await scene.claims([row["id"] for row in rows])(scene.session) == []
    await apply_holds.turn(scene.parts, scene.session)
    assert await count(scene, "select count(*) from held_execution") == len(rows)
    async with scene.session.transaction() as tx:
        await stored_holds.release(tx, "pack", "shop", None)
    await apply_holds.turn(scene.parts, scene.session)


async def each_row_has_a_turn(scene: Scene) -> None:
    turns = await count(
        scene, "select coalesce(sum(cardinality(ids)), 0) from outbox where queue = 'work.default'"
    )
    assert turns >= await count(scene, "select count(*) from execution where status = 'scheduled'")


CASES = (
    Case("claim and hold", claim_and_hold, each_ran_once, ACTIONS, held_work_is_not_claimed),
    Case(
        "two claims of one in a backlog",
        two_claims_of_one_execution,
        each_claimed_once,
        ACTIONS,
        each_row_has_a_turn,
    ),
    Case(
        "two claims of two in a backlog",
        two_claims_of_two_executions,
        each_took_one,
        ACTIONS,
        each_row_has_a_turn,
    ),
    Case("backlog claim and cancel", claim_and_cancel, completed_once, ACTIONS, each_row_has_a_turn),
    Case(
        "backlog claim and new priority", claim_and_new_priority, each_ran_once, ACTIONS, each_row_has_a_turn
    ),
    Case("claim and end of order", claim_and_end_of_order, each_ran_once, ACTIONS, each_row_has_a_turn),
    Case("claim and first priority", claim_and_first_priority, each_ran_once, ACTIONS, each_row_has_a_turn),
)
