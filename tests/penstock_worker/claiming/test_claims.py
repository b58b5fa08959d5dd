"""Nothing that was claimed is unknown to the worker that claimed it, whenever its session is lost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from penstock import action
from penstock.language.loading import Definitions
from penstock.language.moves import COMPLETED
from penstock.language.policies.after_attempt import Ending
from penstock.language.terms.ids import new_id
from penstock.service.heartbeat import Identity
from penstock.store.executions import attempts
from penstock.store.session.database import Session
from penstock_worker.claiming.claims import Claimed, Claims
from penstock_worker.executors.python.async_ import AsyncExecutor
from penstock_worker.records.batches import Batches
from penstock_worker.records.executor_room import ExecutorRoom
from penstock_worker.records.slots import Slots
from tests.crash.test_unknown_commits import lost_after, lost_reading
from tests.flows.installation import Installation

QUEUE = "work.default"


@action(pack="claims")
async def known() -> None: ...


@action(pack="claims")
async def met_later() -> None: ...


async def scheduled(house: Installation, *refs: str) -> list[UUID]:
    """Executions that are on their route."""
    ids = [await house.client.start(ref) for ref in refs]
    await house.until(
        "select from execution where id = any($1::uuid[]) and status = 'scheduled' having count(*) = $2",
        ids,
        len(ids),
    )
    return ids


async def claims(house: Installation, slots: Slots, *defined: Any, capacity: int = 100) -> Claims:
    actions = Definitions(defined or [known, met_later]).actions
    worker = Identity(new_id(), "worker", "claimant", ["default"], sorted(actions))
    session = (await house.parts()).database.session()
    room = ExecutorRoom({"async": AsyncExecutor(capacity=capacity)}, slots.count)
    return Claims(session, worker, actions.get, slots, room, Batches(slots, room), {})


async def test_an_answer_that_was_lost_is_asked_for_again_within_the_slots(house: Installation) -> None:
    await house.apply(known)
    await house.executor()
    ids = await scheduled(house, *["claims.known"] * 6)
    claim = (await claims(house, Slots(4))).claim
    with lost_after("claim") as lost:
        answers = [answer async for answer in claim(QUEUE, ids)]
    assert lost
    taken = [one.event.execution_id for answer in answers for one in answer.attempts]
    running = await house.rows("select id from execution where status = 'running'")
    assert sorted(taken) == sorted(row["id"] for row in running) == sorted(ids[:4])


async def test_two_claims_on_their_way_do_not_take_one_place_twice(house: Installation) -> None:
    await house.apply(known)
    await house.executor()
    mine = await claims(house, Slots(10), capacity=1)
    [first] = await scheduled(house, "claims.known")
    assert [one async for one in mine.claim(QUEUE, [first])]  # it has looked up what it is to claim
    ids = await scheduled(house, *["claims.known"] * 2)
    on_its_way = new_id()
    mine.claimant(on_its_way, 5, QUEUE)
    assert [one.attempts async for one in mine.claim(QUEUE, ids)] == [[]]
    mine.over(on_its_way)
    given = await anext(mine.claim_parked(QUEUE))
    assert [one.event.execution_id for one in given.attempts] == ids[:1]


async def test_claimed_work_is_given_before_the_next_question(house: Installation) -> None:
    await house.apply(known, met_later)
    await house.executor()
    slots = Slots(10)
    claim = (await claims(house, slots)).claim
    [first] = await scheduled(house, "claims.known")
    assert [one async for one in claim(QUEUE, [first])]
    ids = await scheduled(house, "claims.known", "claims.met_later")
    given: list[Claimed] = []
    with lost_reading("bodies") as lost:
        async for answer in claim(QUEUE, ids):
            if answer.attempts and not given:
                assert not lost
            given.append(answer)
    assert lost
    assert sorted(one.event.execution_id for answer in given for one in answer.attempts) == sorted(ids)


async def test_parked_work_is_known_too_though_the_answer_was_lost(house: Installation) -> None:
    await house.apply(known, met_later)
    await house.executor()
    able, lacking = await claims(house, Slots(3)), await claims(house, Slots(9), met_later)
    [first] = await scheduled(house, "claims.known")
    assert [one async for one in able.claim(QUEUE, [first])]
    ids = await scheduled(house, *["claims.known"] * 5)
    assert [answer.parked async for answer in lacking.claim(QUEUE, ids)] == [False, True]
    with lost_after("claim_parked") as lost:
        given = await anext(able.claim_parked(QUEUE))
    assert lost
    assert given.parked
    assert [one.event.execution_id for one in given.attempts] == ids[:3]
    assert {row["execution_id"] for row in await house.rows("select execution_id from parked")} == set(
        ids[3:]
    )


@pytest.mark.parametrize("transport", ["postgres"])
async def test_claim_that_the_server_carries_out_late_keeps_its_row(
    house: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker never learns of what such a claim took. Executors find it by the row of the claim, so the row must not
    be deleted with the claim that the worker knows."""
    await house.apply(known, met_later)
    await house.executor()
    able, lacking = await claims(house, Slots(3)), await claims(house, Slots(9), met_later)
    [first] = await scheduled(house, "claims.known")
    assert [one async for one in able.claim(QUEUE, [first])]
    ids = await scheduled(house, *["claims.known"] * 6)
    assert [answer.parked async for answer in lacking.claim(QUEUE, ids)] == [False, True]

    late: list[Callable[[], Awaitable[Any]]] = []
    claim_parked = attempts.claim_parked

    async def cut(session: Session, **asked: Any) -> attempts.ClaimAnswer:
        if late:
            return await claim_parked(session, **asked)
        late.append(partial(claim_parked, house.session, **asked))
        raise asyncpg.ConnectionDoesNotExistError("the request is still on its way")

    monkeypatch.setattr(attempts, "claim_parked", cut)
    given = await anext(able.claim_parked(QUEUE))
    assert [one.event.execution_id for one in given.attempts] == ids[:3]
    assert len((await late[0]()).attempts) == 3
    async with house.session.transaction() as tx:
        ends = [one.ended(Ending(COMPLETED, result="null")) for one in given.attempts]
        await attempts.finish(tx, able._worker.id, ends, sorted({one.claim for one in given.attempts}))
    rows = await house.rows("select unnest(executions) as id from claim")
    assert sorted(ids[3:]) == sorted(row["id"] for row in rows if row["id"] in ids)


async def test_slots_that_permits_promise_are_not_claimed(house: Installation) -> None:
    await house.apply(known)
    await house.executor()
    ids = await scheduled(house, *["claims.known"] * 6)
    slots = Slots(4)
    slots.promised = 3
    answers = [answer async for answer in (await claims(house, slots)).claim(QUEUE, ids)]
    assert sum(len(answer.attempts) for answer in answers) == 1
