"""Races made to happen: two connections, one after the other's lock, in both orders."""

from __future__ import annotations

import asyncio

import pytest

from penstock.errors import IllegalMove
from penstock.language.terms.ids import new_id
from penstock.store.processes.heartbeats import LEAVE
from tests.penstock.store.race_scene import CANCEL, CLAIM, FINISH, REAP, SCHEDULE, Scene, finish, ids_of


@pytest.mark.parametrize("swapped", [False, True])
async def test_two_executors_that_race_on_a_message_schedule_it_once(scene: Scene, swapped: bool) -> None:
    ids = await scene.requested(30)
    pair = (scene.other, scene.one) if swapped else (scene.one, scene.other)
    won, lost = await scene.race(*pair, SCHEDULE, ids)
    assert sorted(ids_of(won, "work.default")) == ids
    assert lost == []


async def test_two_executors_with_the_ids_in_opposite_order_do_not_deadlock(scene: Scene) -> None:
    for _ in range(20):
        ids = await scene.requested(50)
        one, other = await asyncio.gather(
            scene.one.fetch(SCHEDULE, ids), scene.other.fetch(SCHEDULE, list(reversed(ids)))
        )
        assert sorted(ids_of(one, "work.default") + ids_of(other, "work.default")) == ids


async def test_two_workers_that_race_on_an_envelope_claim_each_execution_once(scene: Scene) -> None:
    ids = await scene.requested(10)
    await scene.one.fetch(SCHEDULE, ids)
    async with scene.one.transaction() as tx:
        won = await tx.fetch(CLAIM, new_id(), new_id(), ids, [scene.definition])
        task = asyncio.create_task(scene.other.fetch(CLAIM, new_id(), new_id(), ids, [scene.definition]))
        await scene.blocked()
    assert sorted(row["execution_id"] for row in won) == ids
    assert await task == []


async def test_a_stale_claim_changes_nothing(scene: Scene) -> None:
    ids = await scene.requested(1)
    await scene.one.fetch(SCHEDULE, ids)
    worker = new_id()
    await scene.one.fetch(CLAIM, worker, new_id(), ids, [scene.definition])
    for stranger, attempt in ((new_id(), 1), (worker, 2), (worker, 0)):
        assert await finish(scene.one, stranger, ids, attempt, "completed") == []
    assert await scene.statuses() == {"running"}
    assert await finish(scene.one, worker, ids, 1, "completed") == ids


async def test_a_second_completion_changes_nothing(scene: Scene) -> None:
    ids = await scene.requested(5)
    await scene.one.fetch(SCHEDULE, ids)
    worker = new_id()
    await scene.one.fetch(CLAIM, worker, new_id(), ids, [scene.definition])
    assert await finish(scene.one, worker, ids, 1, "completed") == ids
    assert await finish(scene.one, worker, ids, 1, "failed") == []
    assert await scene.statuses() == {"completed"}


async def test_cancel_and_completion_have_one_winner(scene: Scene) -> None:
    ids = await scene.requested(1)
    await scene.one.fetch(SCHEDULE, ids)
    worker = new_id()
    await scene.one.fetch(CLAIM, worker, new_id(), ids, [scene.definition])
    async with scene.one.transaction() as tx:
        await tx.fetch(FINISH, worker, ids, [1], ["completed"], [0.0])
        task = asyncio.create_task(scene.other.fetch(CANCEL, ids))
        await scene.blocked()
    assert not any((await task)[0])
    assert await scene.statuses() == {"completed"}


async def test_work_that_won_the_race_against_its_cancellation_completes(scene: Scene) -> None:
    ids = await scene.requested(1)
    await scene.one.fetch(SCHEDULE, ids)
    worker = new_id()
    await scene.one.fetch(CLAIM, worker, new_id(), ids, [scene.definition])
    [told] = await scene.one.fetch(CANCEL, ids)
    assert told["canceling"] == ids
    await scene.one.fetch(FINISH, worker, ids, [1], ["completed"], [0.0])
    assert await scene.statuses() == {"completed"}


async def test_an_action_that_fails_while_it_is_cancelled_is_cancelled_and_not_retried(scene: Scene) -> None:
    ids = await scene.requested(1)
    await scene.one.fetch(SCHEDULE, ids)
    worker = new_id()
    await scene.one.fetch(CLAIM, worker, new_id(), ids, [scene.definition])
    await scene.one.fetch(CANCEL, ids)
    await scene.one.fetch(FINISH, worker, ids, [1], ["requested"], [0.0])
    assert await scene.statuses() == {"cancelled"}


@pytest.mark.parametrize("move", ["running", "completed", "queued"])
async def test_the_database_refuses_an_illegal_move(scene: Scene, move: str) -> None:
    ids = await scene.requested(2)
    await scene.one.fetch(SCHEDULE, ids)
    await scene.one.fetch(
        "select * from end_executions($1::uuid[], '{scheduled}', 'cancelled', 'why', null)", ids
    )
    with pytest.raises(IllegalMove, match=str(ids[0])):
        await scene.one.fetch("update execution set status = $2 where id = $1", ids[0], move)


async def test_a_worker_takes_only_work_that_it_has_slots_and_code_for(scene: Scene) -> None:
    ids = await scene.requested(10)
    await scene.one.fetch(SCHEDULE, ids)
    few = "select * from claim_executions($1, $2, $3::uuid[], 3, 'work.default', $4::integer[], '{}'::integer[])"
    [row] = await scene.one.fetch(few, new_id(), new_id(), ids, [scene.definition])
    assert [one["execution_id"] for one in row["claimed"]] == ids[:3]
    assert ids_of(row["messages"], "work.default") == ids[3:]
    [row] = await scene.one.fetch(few, new_id(), new_id(), ids[3:], [])
    assert row["unknown"] == [scene.definition]
    assert len(await scene.one.fetch("select from execution where status = 'running'")) == 3


async def test_a_message_for_another_route_is_not_claimed_here(scene: Scene) -> None:
    ids = await scene.requested(1)
    await scene.one.fetch(SCHEDULE, ids)
    elsewhere = CLAIM.replace("'work.default'", "'work.gpu'")
    assert await scene.one.fetch(elsewhere, new_id(), new_id(), ids, [scene.definition]) == []
    staged = await scene.one.fetch("select ids from outbox where queue = 'work.default'")
    assert [row["ids"] for row in staged][-1:] == [ids]


async def test_work_of_a_worker_that_left_with_it_in_hand_is_taken_back(scene: Scene) -> None:
    ids = await scene.requested(2)
    await scene.one.fetch(SCHEDULE, ids)
    worker = new_id()
    await scene.one.fetch("insert into process (id, kind, name) values ($1, 'worker', 'leaver')", worker)
    await scene.one.fetch(CLAIM, worker, new_id(), ids, [scene.definition])
    await scene.one.fetch(LEAVE, worker)
    [row] = await scene.other.fetch(REAP, 1.0)
    assert row["moved"] == ids
    assert await scene.statuses() == {"scheduled"}
    [[reason]] = await scene.one.fetch("select distinct reason from execution")
    assert reason == "worker leaver left with work in hand"


async def test_work_claimed_during_a_sweep_is_swept_later(scene: Scene) -> None:
    ids = await scene.requested(2)
    await scene.one.fetch(SCHEDULE, ids)
    worker = new_id()
    await scene.one.fetch("insert into process (id, kind, name) values ($1, 'worker', 'frozen')", worker)
    await scene.one.fetch(CLAIM, worker, new_id(), ids[:1], [scene.definition])
    await scene.one.fetch("update process set beat_at = clock_timestamp() - interval '1 hour'")
    async with scene.one.transaction() as tx:  # holds the row that the sweep wants to recover
        await tx.fetch("select from execution where id = $1 for update", ids[0])
        sweeping = asyncio.create_task(scene.other.fetch(REAP, 10.0))
        await scene.blocked()
        await scene.watcher.fetch(CLAIM, worker, new_id(), ids[1:], [scene.definition])
    assert [row["moved"] for row in await sweeping] == [ids[:1]]
    assert len(await scene.one.fetch("select from claim")) == 1
    await scene.one.fetch("update claim set claimed_at = claimed_at - interval '1 hour'")
    [row] = await scene.other.fetch(REAP, 10.0)
    assert row["moved"] == ids[1:]


async def test_work_claimed_since_by_another_worker_is_left_to_it(scene: Scene) -> None:
    ids = await scene.requested(1)
    await scene.one.fetch(SCHEDULE, ids)
    await scene.one.fetch(CLAIM, new_id(), new_id(), ids, [scene.definition])
    [taken] = await scene.other.fetch(
        "select * from recover_executions($1, $2::uuid[], 'lost')", new_id(), ids
    )
    assert not any(taken)
    assert await scene.statuses() == {"running"}


async def test_an_execution_may_be_tried_more_often_than_a_small_number_can_count(scene: Scene) -> None:
    ids = await scene.requested(2)  # its neighbour in the envelope is claimed with it
    await scene.one.fetch(SCHEDULE, ids)
    await scene.one.fetch("update execution set attempt = 40000 where id = $1", ids[0])
    claimed = await scene.one.fetch(CLAIM, new_id(), new_id(), ids, [scene.definition])
    assert sorted(one["attempt"] for one in claimed) == [1, 40001]
