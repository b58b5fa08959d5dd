"""The order of starts under one limit."""

from __future__ import annotations

from typing import Any

import pytest

from penstock import Limit
from tests.penstock.store.admission.desk import Desk

FIVE = Limit(5, ref="shop.five", scope="shop")
ONE = Limit(1, ref="shop.one", scope="shop")
RECOVERY = """
insert into payload (execution_id, params, options) values ($1, '{}', jsonb_build_object('recovery', $2::text::jsonb))
on conflict (execution_id) do update set options = excluded.options
"""


async def test_as_many_start_as_the_limit_allows_and_the_others_wait(desk: Desk) -> None:
    await desk.open(FIVE)
    ids = await desk.start(8)
    assert await desk.scheduled(ids) == [0, 1, 2, 3, 4]
    assert await desk.statuses(ids[5:]) == ["queued"] * 3
    await desk.sound()


async def test_a_batch_is_let_in_as_far_as_there_is_room(desk: Desk) -> None:
    await desk.open(FIVE)
    ids = await desk.request(12)
    await desk.admit(ids)
    assert await desk.scheduled(ids) == [0, 1, 2, 3, 4]
    await desk.run(ids[:3])
    assert await desk.scheduled(ids) == [3, 4, 5, 6, 7]
    await desk.run(ids[3:8])
    assert await desk.scheduled(ids) == [8, 9, 10, 11]
    await desk.run(ids[8:])
    assert await desk.slots() == {}
    await desk.sound()


async def test_admitting_twice_changes_nothing(desk: Desk) -> None:
    await desk.open(ONE)
    ids = await desk.start(3)
    for _ in range(2):
        await desk.admit(ids)
    assert await desk.scheduled(ids) == [0]
    assert len(await desk.slots()) == 1
    await desk.sound()


@pytest.mark.parametrize("ending", ["completed", "failed", "timeout", "cancelled", "waiting", "requested"])
async def test_whatever_ends_an_attempt_lets_the_next_one_in(desk: Desk, ending: str) -> None:
    await desk.open(ONE)
    ids = await desk.start(3)
    await desk.run(ids[:1], ending)
    assert await desk.scheduled(ids) == [1]
    await desk.sound()


async def test_a_retried_execution_holds_no_slot_and_goes_to_the_end(desk: Desk) -> None:
    await desk.open(ONE)
    ids = await desk.start(3)
    await desk.run(ids[:1], "requested")
    await desk.admit(ids[:1])
    order = []
    for _ in range(3):
        [n] = await desk.scheduled(ids)
        order.append(n)
        await desk.run([ids[n]])
    assert order == [1, 2, 0]
    await desk.sound()


async def test_higher_priority_goes_first(desk: Desk) -> None:
    await desk.open(ONE)
    ids = await desk.start(2)
    ids += await desk.start(1, priority=5)
    ids += await desk.start(1, priority=-1)
    order = []
    for _ in range(4):
        [n] = await desk.scheduled(ids)
        order.append(n)
        await desk.run([ids[n]])
    assert order == [0, 2, 1, 3]
    await desk.sound()


@pytest.mark.parametrize("state", ["queued", "scheduled", "running"])
async def test_cancelling_in_any_state_leaves_no_slot_behind(desk: Desk, state: str) -> None:
    await desk.open(ONE)
    ids = await desk.start(3)
    victim = ids[1] if state == "queued" else ids[0]
    if state == "running":
        await desk.claim([victim])
    await desk.cancel([victim])
    if state == "running":
        assert await desk.statuses([victim]) == ["canceling"]
        assert await desk.scheduled(ids) == []  # it still holds its slot
        await desk.finish([victim], "cancelled")
    assert await desk.statuses([victim]) == ["cancelled"]
    rest = [id for id in ids if id != victim]
    assert await desk.scheduled(rest) == [0]
    await desk.run(rest[:1])
    await desk.run(rest[1:])
    assert await desk.slots() == {}
    await desk.sound()


async def test_a_queued_execution_that_expires_leaves_the_line(desk: Desk) -> None:
    await desk.open(ONE)
    ids = await desk.start(3)
    await desk.session.fetch(
        "insert into timer (due_at, kind, execution_id) values (now(), 'total', $1) returning 1", ids[1]
    )
    await desk.timers()
    assert await desk.statuses(ids) == ["scheduled", "timeout", "queued"]
    await desk.run(ids[:1])
    assert await desk.scheduled(ids) == [2]
    await desk.sound()


@pytest.mark.parametrize(
    ("recovery", "becomes"),
    [("{}", "scheduled"), ('{"on_worker_loss": "fail"}', "failed"), ('{"max_recoveries": 0}', "abandoned")],
)
async def test_lost_worker_frees_slots_unless_work_comes_back(
    desk: Desk, recovery: str, becomes: str
) -> None:
    await desk.open(ONE)
    ids = await desk.start(2)
    await desk.claim(ids[:1])
    await desk.session.fetch(RECOVERY, ids[0], recovery)
    await desk.session.fetch(
        "select * from recover_executions($1, $2::uuid[], 'worker x was lost')", desk.worker, ids[:1]
    )
    # Work that runs again has its old place, before the waiter, in the same transaction.
    waiter = "queued" if becomes == "scheduled" else "scheduled"
    assert await desk.statuses(ids) == [becomes, waiter]
    await desk.sound()


async def test_every_value_of_a_parameter_has_a_limit_of_its_own(desk: Desk) -> None:
    await desk.open(Limit(1, ref="shop.each", scope="shop.charge", by=("customer", "region")))
    kinds: list[dict[str, Any]] = [
        {"customer": "a"},
        {"customer": "a", "region": 1},
        {"customer": "a|1"},
        {"customer": None},
        {},
    ]
    ids = [(await desk.start(2, **kind)) for kind in kinds]
    # The last two are the same: a parameter that is missing is a value of its own, and so is null.
    assert [await desk.scheduled(pair) for pair in ids] == [[0], [0], [0], [0], []]
    assert len(await desk.slots()) == 4
    await desk.sound()


async def test_long_values_are_told_apart(desk: Desk) -> None:
    await desk.open(Limit(1, ref="shop.each", scope="shop.charge", by="customer"))
    ids = [(await desk.start(2, customer="x" * 5000 + end))[0] for end in "ab"]
    assert await desk.scheduled(ids) == [0, 1]
    await desk.sound()


async def test_a_pack_and_everything_are_limited_across_actions(desk: Desk) -> None:
    await desk.open(Limit(2, ref="ops.shop", scope="shop"), Limit(3, ref="ops.all", scope="*"))
    ids = await desk.start(2, "shop.charge") + await desk.start(2, "shop.refund")
    ids += await desk.start(2, "mail.send")
    assert await desk.scheduled(ids) == [0, 1, 4]
    await desk.run([ids[0]])
    assert await desk.scheduled(ids) == [1, 2, 4]
    await desk.run([ids[4]])
    assert await desk.scheduled(ids) == [1, 2, 5]
    await desk.sound()
