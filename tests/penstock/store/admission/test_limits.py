"""Limits that change while executions wait under them."""

from __future__ import annotations

from typing import Literal

import pytest

from penstock import Limit
from penstock.store.admission import namespaces
from penstock.store.session.database import Session, Transaction
from tests.penstock.store.admission.desk import Desk, drained, racing

ONE = Limit(1, ref="shop.one", scope="shop")


async def test_raising_a_limit_fills_it_and_lowering_it_drains(desk: Desk) -> None:
    await desk.open(ONE)
    ids = await desk.start(8)
    await desk.apply(Limit(4, ref="shop.one", scope="shop"))
    await desk.tidy()
    assert await desk.scheduled(ids) == [0, 1, 2, 3]
    await desk.apply(Limit(2, ref="shop.one", scope="shop"))
    await desk.tidy()
    await desk.run(ids[:2])
    assert await desk.scheduled(ids) == [2, 3]
    await desk.run(ids[2:3])
    assert await desk.scheduled(ids) == [3, 4]
    await desk.sound()


async def test_a_limit_that_is_removed_lets_all_go(desk: Desk) -> None:
    await desk.open(ONE)
    ids = await desk.start(5)
    await desk.session.fetch("delete from catalog where kind = 'limit' returning 1")
    await desk.apply(Limit(1, ref="mail.other", scope="mail"))
    await desk.tidy()
    assert await desk.scheduled(ids) == [0, 1, 2, 3, 4]
    await desk.run(ids)
    await desk.sound()


async def test_an_added_limit_holds_for_waiting_executions(desk: Desk) -> None:
    await desk.open(Limit(2, ref="shop.two", scope="shop"))
    ids = [(await desk.start(1, customer=customer))[0] for customer in "aabbaabb"]
    await desk.apply(Limit(1, ref="shop.each", scope="shop.charge", by="customer"))
    await desk.tidy()
    await desk.run(ids[:2])
    assert await desk.scheduled(ids) == [2, 4]
    assert await drained(desk, ids) == [2, 4, 3, 5, 6, 7]
    await desk.sound()


@pytest.mark.parametrize("when_full", ["cancel_new", "enqueue"])
async def test_an_execution_that_joins_a_regrouped_line_waits_in_it(
    desk: Desk, when_full: Literal["cancel_new", "enqueue"]
) -> None:
    one = Limit(1, ref="shop.one", scope="shop", when_full=when_full, max_waiting=5)
    await desk.open(one)
    ids = await desk.start(1)
    await desk.run(ids, "requested", delay=0.5)
    ids += await desk.start(1)
    await desk.retry(ids[:1])  # a retry waits, whatever the limit says of new executions
    await desk.apply(Limit(9, ref="mail.nine", scope="shop"))
    await desk.session.fetch("delete from catalog where ref = 'mail.nine' returning 1")
    await desk.apply(Limit(3, ref="mail.three", scope="mail"))
    ids += await desk.start(1)
    await desk.tidy()
    assert await desk.statuses(ids[:2]) == ["queued", "scheduled"]
    await desk.run(ids[1:2])
    assert await desk.statuses(ids[:1]) == ["scheduled"]
    await desk.sound()


async def test_very_many_are_let_in_part_by_part(desk: Desk) -> None:
    await desk.open(ONE, Limit(1, ref="mail.one", scope="mail"))
    ids = await desk.request(2500)
    await desk.admit(ids)
    shared = await desk.request(1, customer="a")
    await desk.apply(Limit(10_000, ref="shop.one", scope="shop"))
    assert await desk.session.fetch("select 1 from wake_keys(100) where woken")
    assert 1000 < len(await desk.scheduled(ids)) < 1100
    await desk.tidy()
    assert len(await desk.scheduled(ids)) == 2500
    await desk.admit(shared)
    await desk.sound()


async def test_two_replicas_that_regroup_a_line_leave_the_old_empty(desk: Desk) -> None:
    await desk.open(ONE)
    ids = await desk.start(9)
    await desk.apply(Limit(1, ref="shop.one", scope="shop", by="customer"))
    other = desk.database.session()

    async def regroup(session: Session | Transaction) -> None:
        await session.fetch("select * from regroup(2)")

    await racing(desk, regroup, regroup(other))
    await desk.tidy()
    lanes = await desk.session.fetch(
        "select cardinality(keys) as keys, keys[1] = (gate_limit, gate_group)::limit_key as stands from lane"
    )
    assert [(row["keys"], row["stands"]) for row in lanes] == [(1, True)]
    assert not await desk.session.fetch(
        "select from waiter w join lane l on l.id = w.lane where (1, '')::limit_key = any(l.keys)"
    )
    # The first holds a slot of the limit as it was: one more starts under the limit as it is.
    assert await desk.scheduled(ids) == [0, 1]
    await desk.sound()


async def test_a_limit_cannot_change_between_a_decision_and_its_commit(desk: Desk) -> None:
    await desk.open(ONE)
    ids = await desk.request(1)
    changing = Desk(desk.database)
    await racing(
        desk,
        lambda tx: desk.admit(ids, tx),
        changing.apply(Limit(1, ref="shop.one", scope="shop", by="customer")),
    )
    assert await desk.scheduled(ids) == [0]
    await desk.sound()


async def test_a_limit_that_changes_while_lanes_are_woken_for_a_worker_is_not_forgotten(desk: Desk) -> None:
    await desk.open(ONE, worker=False)
    ids = await desk.start(3)
    await desk.hire("shop.charge")
    other = desk.database.session()

    async def change(tx: Transaction) -> None:
        await namespaces.lock_rules(tx)
        await tx.fetch("select limits_changed(array(select id from namespace), '{}')")

    # The waking session has seen that the lane waits for a worker, and waits for the placement.
    await racing(desk, change, other.fetch("select * from wake_keys(100)"))
    [[kind]] = await desk.session.fetch("select gate_kind from lane")
    assert kind == "regroup"
    await desk.tidy()
    assert await desk.scheduled(ids) == [0]
    await desk.sound()
