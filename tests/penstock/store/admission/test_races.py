"""Races under limits, made to happen: two connections, one in an open transaction when the other one comes."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from penstock import Limit
from penstock.store.executions import executions
from tests.penstock.store.admission.desk import Desk, racing

ONE = Limit(1, ref="shop.one", scope="shop")
EACH = Limit(1, ref="shop.each", scope="shop.charge", by="customer")
WHOLE = Limit(1, ref="shop.whole", scope="shop")


async def test_two_that_come_at_once_do_not_both_get_the_last_slot(desk: Desk) -> None:
    await desk.open(ONE)
    ids = await desk.request(2)
    other = desk.database.session()
    await racing(desk, lambda tx: desk.admit(ids[1:], tx), desk.admit(ids[:1], other))
    assert await desk.scheduled(ids) == [1]
    assert await desk.slots() == {(1, ""): 1}
    await desk.sound()


async def test_an_execution_queued_as_the_holder_leaves_starts(desk: Desk) -> None:
    await desk.open(ONE)
    [holder] = await desk.start(1)
    await desk.claim([holder])
    [late] = await desk.request(1)
    other = desk.database.session()
    await racing(desk, lambda tx: desk.admit([late], tx), desk.finish([holder], session=other))
    assert await desk.statuses([late]) == ["scheduled"]
    await desk.sound()


async def test_an_execution_that_comes_during_an_end_gets_the_slot(desk: Desk) -> None:
    await desk.open(ONE)
    [holder] = await desk.start(1)
    await desk.claim([holder])
    [late] = await desk.request(1)
    other = desk.database.session()
    await racing(desk, lambda tx: desk.finish([holder], session=tx), desk.admit([late], other))
    assert await desk.statuses([late]) == ["scheduled"]
    await desk.sound()


async def test_the_line_is_in_order_whichever_replica_was_first(desk: Desk) -> None:
    await desk.open(ONE)
    [holder] = await desk.start(1)
    ids = await desk.request(2)
    other = desk.database.session()
    await racing(desk, lambda tx: desk.admit(ids[1:], tx), desk.admit(ids[:1], other))
    await desk.run([holder])
    assert await desk.scheduled(ids) == [0]
    await desk.run(ids[:1])
    assert await desk.scheduled(ids) == [1]
    await desk.sound()


async def test_two_holders_that_leave_at_once_start_two(desk: Desk) -> None:
    await desk.open(Limit(2, ref="shop.two", scope="shop"))
    ids = await desk.start(5)
    await desk.claim(ids[:2])
    other = desk.database.session()
    await racing(desk, lambda tx: desk.finish(ids[:1], session=tx), desk.finish(ids[1:2], session=other))
    assert await desk.scheduled(ids) == [2, 3]
    await desk.sound()


async def two_keys_held(desk: Desk) -> tuple[UUID, UUID, UUID]:
    """One holds the customer's slot (and one of the pack's two), one the other of the pack's; a third waits for the
    customer's."""
    await desk.open(EACH, Limit(2, ref="shop.whole", scope="shop"))
    [first] = await desk.start(1, customer="a")
    [second] = await desk.start(1, "shop.refund")
    [third] = await desk.start(1, customer="a")
    await desk.claim([first, second])
    assert await desk.statuses([first, second, third]) == ["running", "running", "queued"]
    return first, second, third


@pytest.mark.parametrize("swapped", [False, True])
async def test_an_execution_of_two_limits_starts_when_both_are_freed(desk: Desk, swapped: bool) -> None:
    first, second, third = await two_keys_held(desk)
    one, other = (second, first) if swapped else (first, second)
    session = desk.database.session()
    await racing(desk, lambda tx: desk.finish([one], session=tx), desk.finish([other], session=session))
    await desk.tidy()
    assert await desk.statuses([third]) == ["scheduled"]
    await desk.sound()


async def test_a_key_that_cannot_be_locked_in_order_leaves_a_wake_row(desk: Desk) -> None:
    await desk.open(EACH, Limit(2, ref="shop.whole", scope="shop"))
    [first] = await desk.start(1, customer="a")
    await desk.claim([first])
    # This execution waits only for the customer's slot. It holds no slot of the pack, whose lock another session has.
    [waits] = await desk.start(1, customer="a")
    group = next(group for limit, group in await desk.slots() if limit == 1)
    session = desk.database.session()
    async with desk.database.session().transaction() as tx:
        await tx.fetch("select pg_advisory_xact_lock(7, key_lock((2, '')))")
        async with session.transaction() as freeing:
            # As if the customer's slot were freed by a session that knows of no other key.
            await freeing.fetch("select lock_keys(array[(1, $1)::limit_key])", group)
            await freeing.fetch("delete from slot where limit_id = 1 and group_value = $1 returning 1", group)
            await freeing.fetch("select * from promote(array[(1, $1)::limit_key])", group)
    assert await desk.statuses([waits]) == ["queued"]
    assert await desk.session.fetch("select from wake where limit_id = 1 and group_value = $1", group)
    await desk.tidy()
    assert await desk.statuses([waits]) == ["scheduled"]


@pytest.mark.parametrize(
    "limits",
    [
        (EACH,),
        (EACH, Limit(2, ref="shop.whole", scope="shop")),
        (Limit(1, rate="1000/min", ref="shop.rated", scope="shop.charge", by="customer"),),
    ],
    ids=["one limit", "two limits", "a rate"],
)
async def test_a_locked_first_in_line_is_looked_at_again_soon(desk: Desk, limits: tuple[Limit, ...]) -> None:
    await desk.open(*limits)
    [first] = await desk.start(1, customer="a")
    await desk.claim([first])
    [waits] = await desk.start(1, customer="a")
    async with desk.database.session().transaction() as tx:
        await tx.fetch("select from execution where id = $1 for no key update", waits)
        await desk.finish([first])
        assert await desk.statuses([waits]) == ["queued"]
        [[at, soon]] = await desk.session.fetch(
            "select at, at < clock_timestamp() + interval '1 second' from wake"
        )
        assert soon
        woken = await desk.session.fetch("select 1 from wake_keys(100) where woken")
        [[due]] = await desk.session.fetch("select clock_timestamp() >= $1", at)
        assert due or not woken, "before it was due"
    await desk.tidy()
    assert await desk.statuses([waits]) == ["scheduled"]


async def test_cancel_of_a_locked_first_in_line_starts_the_next_at_once(desk: Desk) -> None:
    """The wake row of the first execution is due later, and does not stand for a rate that is used up."""
    await desk.open(Limit(1, rate="1000/min", ref="shop.rated", scope="shop.charge", by="customer"))
    [first] = await desk.start(1, customer="a")
    await desk.claim([first])
    [locked, waits] = await desk.start(2, customer="a")
    async with desk.database.session().transaction() as tx:
        await tx.fetch("select from execution where id = $1 for no key update", locked)
        await desk.finish([first])
        assert await desk.statuses([locked, waits]) == ["queued", "queued"]
        await tx.fetch("update wake set at = clock_timestamp() + interval '100 milliseconds'")
        await executions.cancel(tx, [locked], "asked")
    assert await desk.statuses([locked, waits]) == ["cancelled", "scheduled"]
    await desk.sound()


async def test_locked_first_in_line_delays_no_other_key_of_its_rate(desk: Desk) -> None:
    await desk.open(Limit(1, rate="1000/min", ref="shop.rated", scope="shop.charge", by="customer"))
    holders = [(await desk.start(1, customer=customer))[0] for customer in "ab"]
    await desk.claim(holders)
    waiters = [(await desk.start(1, customer=customer))[0] for customer in "ab"]
    async with desk.database.session().transaction() as tx:
        await tx.fetch("select from execution where id = $1 for no key update", waiters[0])
        await desk.finish(holders[:1])
        assert len(await desk.session.fetch("select from wake")) == 1
        await desk.finish(holders[1:])
        assert await desk.statuses(waiters) == ["queued", "scheduled"]


@pytest.mark.parametrize("more", [(), (WHOLE,)], ids=["one limit", "two limits"])
async def test_an_unqueued_execution_in_line_is_not_admitted(desk: Desk, more: tuple[Limit, ...]) -> None:
    await desk.open(EACH, *more)
    [first] = await desk.start(1, customer="a")
    [odd] = await desk.start(1, customer="a")
    await desk.session.fetch("update execution set status = 'requested' where id = $1 returning 1", odd)
    await desk.run([first])
    assert await desk.statuses([odd]) == ["requested"]
    assert await desk.session.fetch("select 1 from wake"), "somebody looks again"


async def test_a_busy_key_of_the_first_in_line_lets_no_other_overtake(desk: Desk) -> None:
    await desk.open(EACH, Limit(1, ref="shop.whole", scope="shop"))
    await desk.start(1, "shop.refund")
    ids = [(await desk.start(1, customer=customer))[0] for customer in "ab"]
    [[key]] = await desk.session.fetch("select key_lock(keys[1]) from lane order by ready_at limit 1")
    session = desk.database.session()
    async with desk.database.session().transaction() as tx:
        await tx.fetch("select pg_advisory_xact_lock(7, $1)", key)
        async with session.transaction() as freeing:
            # As if it had become the first only after the keys were locked.
            await freeing.fetch("select lock_keys(array[(2, '')::limit_key])")
            await freeing.fetch("delete from slot where limit_id = 2 returning 1")
            await freeing.fetch("select * from promote(array[(2, '')::limit_key])")
        assert await desk.scheduled(ids) == []
    await desk.tidy()
    assert await desk.scheduled(ids) == [0]


async def test_an_execution_passed_over_for_its_locked_row_comes_next(desk: Desk) -> None:
    await desk.open(ONE)
    ids = await desk.start(3)
    await desk.claim(ids[:1])
    async with desk.database.session().transaction() as tx:
        await tx.fetch("select id from execution where id = $1 for no key update", ids[1])
        await desk.finish(ids[:1])
        assert await desk.scheduled(ids) == []
    await desk.tidy()
    assert await desk.scheduled(ids) == [1]
    await desk.sound()


async def test_a_passed_over_execution_is_not_overtaken_from_elsewhere(desk: Desk) -> None:
    await desk.open(Limit(2, ref="ops.all", scope="*"), Limit(1, ref="shop.whole", scope="shop"))
    [first] = await desk.start(1, "shop.refund")
    [younger] = await desk.start(
        1, "shop.charge"
    )  # before the pack's limit: there is room under the other one
    [other] = await desk.start(1, "mail.send")
    [older] = await desk.start(1, "shop.refund", priority=5)  # before the limit of all: that is full now
    gates = await desk.session.fetch("select gate_limit from lane order by rank")
    assert [row["gate_limit"] for row in gates] == [1, 2]
    await desk.claim([first, other])
    async with desk.database.session().transaction() as tx:
        await tx.fetch("select id from execution where id = $1 for no key update", older)
        await desk.finish([first, other])
        assert await desk.statuses([older, younger]) == ["queued", "queued"]
    await desk.tidy()
    assert await desk.statuses([older, younger]) == ["scheduled", "queued"]
    await desk.sound()


@pytest.mark.parametrize(
    "more", [[], [Limit(9, ref="shop.whole", scope="shop")]], ids=["one limit", "two limits"]
)
async def test_a_passed_over_execution_goes_first_with_room_for_both(desk: Desk, more: list[Limit]) -> None:
    await desk.open(Limit(2, ref="shop.two", scope="shop.charge"), *more)
    holders = await desk.start(2)
    await desk.claim(holders)
    older, younger = await desk.start(2)
    async with desk.database.session().transaction() as tx:
        await tx.fetch("select id from execution where id = $1 for no key update", older)
        await desk.finish(holders)
        assert await desk.statuses([older, younger]) == ["queued", "queued"]
    await desk.tidy()
    assert await desk.statuses([older, younger]) == ["scheduled", "scheduled"]
    await desk.sound()


async def test_a_cancellation_and_a_promotion_of_the_same_one_leave_no_slot_behind(desk: Desk) -> None:
    await desk.open(ONE)
    ids = await desk.start(3)
    await desk.claim(ids[:1])
    other = desk.database.session()
    await racing(desk, lambda tx: desk.finish(ids[:1], session=tx), desk.cancel([ids[1]], other))
    await desk.tidy()
    assert await desk.statuses(ids) == ["completed", "cancelled", "scheduled"]
    assert await desk.slots() == {(1, ""): 1}
    await desk.sound()


async def test_many_in_both_orders_never_lock_each_other_out(desk: Desk) -> None:
    await desk.open(EACH, Limit(7, ref="shop.whole", scope="shop"))
    for _ in range(5):
        ids = [(await desk.request(1, customer=n % 5))[0] for n in range(20)]
        ids += await desk.request(5, "shop.refund")
        sessions = [desk.database.session() for _ in range(3)]
        await asyncio.gather(
            desk.admit(ids[:15], sessions[0]), desk.admit(ids[10:], sessions[1]), desk.admit(ids, sessions[2])
        )
        while running := await desk.scheduled(ids):
            mine = await desk.claim([ids[n] for n in running])
            await asyncio.gather(
                desk.finish(mine[::2], session=sessions[0]), desk.finish(mine[1::2], session=sessions[1])
            )
            await desk.tidy()
        assert set(await desk.statuses(ids)) == {"completed"}
        assert await desk.slots() == {}
    await desk.sound()
