"""The choice of the next execution once there is room: of several lanes, before several keys, and beside a locked row."""

from __future__ import annotations

import pytest

from penstock import Limit
from tests.penstock.store.admission.desk import Desk

EACH = Limit(1, ref="shop.each", scope="shop", by="customer")


async def test_no_more_start_than_there_is_room_for_whatever_lanes_they_stand_in(desk: Desk) -> None:
    await desk.open(Limit(2, ref="shop.two", scope="shop"))
    holders = await desk.start(2)
    await desk.claim(holders)
    ids = []
    for _ in range(3):
        ids += [*await desk.start(1, "shop.refund"), *await desk.start(1, "shop.charge")]
    await desk.finish(holders)
    assert await desk.scheduled(ids) == [0, 1]
    await desk.sound()


async def test_room_under_one_limit_is_none_under_another(desk: Desk) -> None:
    await desk.open(Limit(1, ref="shop.one", scope="shop"), Limit(1, ref="mail.one", scope="mail"))
    [holder] = await desk.start(1)
    await desk.start(1, "mail.send")
    [older] = await desk.start(1, "mail.send")
    [younger] = await desk.start(1)
    await desk.run([holder])
    assert await desk.statuses([older, younger]) == ["queued", "scheduled"]
    await desk.sound()


async def test_room_of_one_customer_is_none_of_another(desk: Desk) -> None:
    await desk.open(
        Limit(1, ref="shop.each", scope="shop", by="customer"), Limit(2, ref="shop.whole", scope="shop")
    )
    [holder], [other] = await desk.start(1, customer="a"), await desk.start(1, customer="c")
    [first] = await desk.start(1, customer="b")
    [second] = await desk.start(
        1, "shop.refund", customer="b"
    )  # before the limit of the pack, like the first
    [last] = await desk.start(1, customer="a")
    await desk.run([other])
    assert await desk.statuses([first, second, last]) == ["scheduled", "queued", "queued"]
    await desk.run([holder])
    assert await desk.statuses([first, second, last]) == ["scheduled", "queued", "scheduled"]
    await desk.sound()


async def test_very_many_under_two_limits_are_let_in_part_by_part(desk: Desk) -> None:
    await desk.open(Limit(1, ref="ops.all", scope="*"), Limit(9999, ref="shop.whole", scope="shop"))
    ids = await desk.request(503)
    await desk.admit(ids)
    await desk.apply(Limit(9999, ref="ops.all", scope="*"))
    started = [len(await desk.scheduled(ids))]
    while await desk.session.fetch("select 1 from wake_keys(100) where woken"):
        started.append(len(await desk.scheduled(ids)))
    assert started == [1, 501, 503]


async def test_a_locked_execution_is_looked_at_again_however_much_room(desk: Desk) -> None:
    await desk.open(Limit(1, ref="shop.one", scope="shop"))
    ids = await desk.start(2)
    async with desk.database.session().transaction() as tx:
        await tx.fetch("select from execution where id = $1 for no key update", ids[1])
        await desk.apply(Limit(9999, ref="shop.one", scope="shop"))
        await desk.session.fetch("select * from wake_keys(100)")
        assert len(await desk.session.fetch("select from wake where limit_id is not null")) == 1


async def test_a_locked_execution_stops_only_executions_behind_it(desk: Desk) -> None:
    await desk.open(Limit(3, ref="shop.three", scope="shop.charge", by="customer"))
    holders = [*await desk.start(3, customer="a"), *await desk.start(3, customer="b")]
    await desk.claim(holders)
    before, held, behind, last = await desk.start(4, customer="a")
    [other] = await desk.start(1, customer="b")
    ids = [before, held, behind, last, other]
    [stuck] = await desk.session.fetch("select gate_group from lane where execution_id = $1", before)
    async with desk.database.session().transaction() as tx:
        await tx.fetch("select from execution where id = $1 for no key update", held)
        await desk.finish(holders)
        assert await desk.scheduled(ids) == [0, 4]
        woken = await desk.session.fetch("select group_value from wake where limit_id is not null")
        assert [tuple(row) for row in woken] == [tuple(stuck)], "it is looked at again"
    await desk.tidy()
    assert await desk.scheduled(ids) == [0, 1, 2, 4]
    await desk.sound()


async def test_lanes_without_workers_stand_aside_only_where_looked_at(desk: Desk) -> None:
    await desk.open(EACH, Limit(1, ref="mail.each", scope="mail", by="customer"))
    first = desk.worker
    await desk.hire("shop.charge")
    [holder] = await desk.start(1, customer="a")
    await desk.start(1, customer="b")
    await desk.start(1, "mail.send", customer="a")
    [away] = await desk.start(1, "shop.refund", customer="a")
    [comes, stays] = await desk.start(2, "shop.charge", customer="a")
    [of_another_customer] = await desk.start(1, "shop.refund", customer="b")
    [of_another_limit] = await desk.start(1, "mail.send", customer="a")
    await desk.dismiss(first)
    await desk.run([holder])
    assert await desk.statuses([comes]) == ["scheduled"]
    gates = await desk.session.fetch("select execution_id, gate_kind from lane")
    assert {row["execution_id"]: row["gate_kind"] for row in gates} == {
        away: "worker",
        stays: "limit",
        of_another_customer: "limit",
        of_another_limit: "limit",
    }
    await desk.sound()


@pytest.mark.parametrize("away", ["first", "last"])
async def test_lanes_of_two_limits_without_workers_let_the_rest_pass(desk: Desk, away: str) -> None:
    await desk.open(EACH, Limit(1, ref="shop.whole", scope="shop"))
    first = desk.worker
    await desk.hire("shop.charge")
    [holder] = await desk.start(1, customer="a")
    refs = ["shop.refund", "shop.charge"] if away == "first" else ["shop.charge", "shop.refund"]
    ids = [(await desk.start(1, ref, customer="a"))[0] for ref in refs]
    await desk.dismiss(first)
    assert await desk.claim([holder]) == [holder]
    # An executor that lets a lane stand first for ever would look at it for ever.
    await desk.finish([holder], session=desk.database.session(timeout=10))
    goes, stays = reversed(ids) if away == "first" else ids
    assert await desk.statuses([goes, stays]) == ["scheduled", "queued"]
    [gate] = await desk.session.fetch("select gate_kind from lane where execution_id = $1", stays)
    assert gate["gate_kind"] == ("worker" if away == "first" else "limit")
    woken = await desk.session.fetch("select from wake where namespace_id is not null")
    assert bool(woken) == (away == "first"), "a worker may just have come"
    await desk.hire("shop.refund")
    await desk.tidy()
    await desk.run([goes])
    await desk.tidy()
    assert await desk.statuses([stays]) == ["scheduled"]
    await desk.sound()


async def test_no_lane_is_woken_without_a_wake_row(desk: Desk) -> None:
    await desk.open(EACH)
    await desk.start(2, customer="a")
    [row] = await desk.session.fetch("select messages, woken from wake_keys(100)")
    assert (row["messages"], row["woken"]) == ([], False)
