"""Executions under a changed limit: none starts before all lanes under this limit are regrouped, and then they start in order."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import UUID

import pytest

from penstock import Limit
from tests.penstock.store.admission.desk import Desk, blocked, drained
from tests.penstock.store.admission.test_budgets import TOKENS, children, root

REGROUP = "select from regroup({}) where regrouped"
WAKE = "select from wake_keys(100) where woken"
MARKED = "select from lane where gate_kind = 'regroup'"
TWO = Limit(2, ref="shop.two", scope="shop")
EACH = Limit(2, ref="shop.two", scope="shop", by="customer")


async def interleaved(desk: Desk, count: int, **params: object) -> list[UUID]:
    """Start executions of two actions in turn."""
    ids = []
    for n in range(count):
        ids += await desk.start(1, "shop.refund" if n % 2 else "shop.charge", **params)
    return ids


async def regroup_and_wake(desk: Desk, chunk: int = 1) -> None:
    """Take one step of the regrouping, and then promote as an executor does."""
    assert await desk.session.fetch(REGROUP.format(chunk))
    while await desk.session.fetch(WAKE):
        await asyncio.sleep(0)


async def started(desk: Desk, ids: Sequence[UUID]) -> list[int]:
    """Regroup in small steps, and return the positions in the order of their starts."""
    order: list[int] = []
    while await desk.session.fetch(MARKED):
        await regroup_and_wake(desk, 2)
        order += [n for n in await desk.scheduled(ids) if n not in order]
    return order


@pytest.mark.parametrize("by", ["customer", "region"])
async def test_lanes_of_two_actions_start_in_one_order(desk: Desk, by: str) -> None:
    await desk.open(TWO)
    holders = await interleaved(desk, 2)
    ids = await interleaved(desk, 8)
    await desk.apply(Limit(3, ref="shop.two", scope="shop", by=by))
    assert await started(desk, ids) == [0, 1, 2]
    await desk.run(holders)
    assert await drained(desk, ids) == list(range(8))
    await desk.sound()


async def test_lanes_of_one_action_start_in_one_order(desk: Desk) -> None:
    await desk.open(Limit(1, ref="shop.one", scope="shop", by="customer"))
    await desk.start(1, customer="acme")
    await desk.start(1, customer="bolt")
    ids = [(await desk.start(1, customer=name))[0] for name in ("acme", "bolt", "acme", "bolt")]
    await desk.apply(Limit(2, ref="shop.one", scope="shop"))
    assert await started(desk, ids) == [0, 1]
    assert await drained(desk, ids) == list(range(4))
    await desk.sound()


async def test_new_start_of_another_action_waits_for_marked_lanes(desk: Desk) -> None:
    await desk.open(TWO)
    await interleaved(desk, 2)
    old = await desk.start(3)
    await desk.apply(EACH)
    new = await desk.start(1, "shop.refund")
    assert await desk.statuses(new) == ["queued"]
    await regroup_and_wake(desk)
    ids = old + new
    assert await desk.scheduled(ids) == []
    await desk.tidy()
    assert await desk.scheduled(ids) == [0, 1]
    assert await drained(desk, ids) == [0, 1, 2, 3]
    await desk.sound()


async def test_freed_slot_of_an_unchanged_limit_goes_to_the_marked_lane(desk: Desk) -> None:
    """The limit of the pack covers a second action, whose lanes are not marked."""
    whole = Limit(2, ref="shop.whole", scope="shop")
    await desk.open(whole, Limit(2, ref="shop.each", scope="shop.charge"))
    holders = await desk.start(2, "shop.refund")
    ids = await desk.start(1, "shop.charge") + await desk.start(1, "shop.refund")
    await desk.apply(Limit(2, ref="shop.each", scope="shop.charge", by="customer"))
    await desk.run(holders[:1])
    assert await desk.scheduled(ids) == []
    await regroup_and_wake(desk)
    assert await desk.scheduled(ids) == [0]
    await desk.run(holders[1:])
    assert await desk.scheduled(ids) == [0, 1]
    await desk.sound()


async def test_other_limits_are_not_held_up(desk: Desk) -> None:
    await desk.open(TWO, Limit(1, ref="mail.one", scope="mail"))
    await interleaved(desk, 4)
    mails = await desk.start(3, "mail.send")
    await desk.apply(EACH)
    await desk.run(mails[:1])
    assert await desk.statuses(mails) == ["completed", "scheduled", "queued"]
    assert await desk.session.fetch(MARKED)
    await desk.tidy()
    await desk.sound()


async def test_lane_before_an_open_gate_waits_for_a_marked_limit(desk: Desk) -> None:
    """A lane of the refunds waits for their own limit, and needs the limit of the pack, too. That one covers marked lanes."""
    whole = Limit(4, ref="shop.whole", scope="shop")
    await desk.open(
        Limit(1, ref="shop.backs", scope="shop.refund"), whole, Limit(2, ref="shop.each", scope="shop.charge")
    )
    backs = await desk.start(2, "shop.refund")
    charges = await desk.start(4, "shop.charge")
    await desk.apply(Limit(4, ref="shop.each", scope="shop.charge", by="customer"))
    await desk.run(backs[:1])
    assert await desk.statuses(backs) == ["completed", "queued"]
    [[wakes]] = await desk.session.fetch(
        "select count(*) from lane l join wake w on w.limit_id = l.gate_limit and w.group_value = l.gate_group"
    )
    assert wakes == 1
    await desk.sound()
    await desk.tidy()
    assert await desk.statuses(backs) == ["completed", "scheduled"]
    assert await desk.scheduled(charges) == [0, 1, 2]
    await desk.sound()


async def test_lane_that_joins_during_the_last_step_is_woken(desk: Desk) -> None:
    """A start saw a marked lane and waits. Meanwhile the last lane is regrouped, without a sight of the new one."""
    await desk.open(EACH)
    holders = await desk.start(2, customer="acme")
    old = await desk.start(1, customer="acme")
    new = await desk.request(1, "shop.refund", customer="bolt")
    await desk.apply(Limit(2, ref="shop.two", scope="shop", by=["customer", "region"]))
    async with desk.database.session().transaction() as tx:
        await desk.admit(new, tx)
        await regroup_and_wake(desk)
        assert not await desk.session.fetch(MARKED)
    await desk.tidy()
    assert await desk.statuses(old + new) == ["scheduled", "scheduled"]
    await desk.run(holders)
    await desk.sound()


async def test_step_that_fails_is_taken_by_another_executor(desk: Desk) -> None:
    await desk.open(TWO)
    await interleaved(desk, 2)
    ids = await interleaved(desk, 6)
    await desk.apply(EACH)
    await regroup_and_wake(desk)

    async def fail() -> None:
        async with desk.database.session().transaction() as tx:
            assert await tx.fetch(REGROUP.format(2))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await fail()
    assert await desk.scheduled(ids) == []
    assert await started(desk, ids) == [0, 1]
    assert await drained(desk, ids) == list(range(6))
    await desk.sound()


async def test_two_executors_regroup_lanes_of_two_actions(desk: Desk) -> None:
    """The second one skips the rows that the first one has locked, and takes the rest after the first one has committed."""
    await desk.open(TWO)
    await interleaved(desk, 2)
    ids = await interleaved(desk, 6)
    await desk.apply(EACH)
    other = desk.database.session()
    async with desk.database.session().transaction() as tx:
        await tx.fetch(REGROUP.format(3))
        step = asyncio.ensure_future(other.fetch(REGROUP.format(6)))
        await blocked(desk)
        assert await desk.scheduled(ids) == []
    await step
    await desk.tidy()
    assert await desk.scheduled(ids) == [0, 1]
    assert await drained(desk, ids) == list(range(6))
    await desk.sound()


AGAIN = {
    "back": TWO,
    "other": Limit(2, ref="shop.two", scope="shop", by="region"),
    "fair": Limit(2, ref="shop.two", scope="shop", by="customer", fair="region"),
    "weighted": Limit(2, ref="shop.two", scope="shop", by="customer", cost="1"),
}


@pytest.mark.parametrize("again", AGAIN)
async def test_second_change_amid_the_first_keeps_the_order(desk: Desk, again: str) -> None:
    await desk.open(TWO)
    holders = await interleaved(desk, 2)
    ids = await interleaved(desk, 6)
    await desk.apply(EACH)
    await regroup_and_wake(desk)
    await desk.apply(AGAIN[again])
    assert await desk.scheduled(ids) == []
    order = await started(desk, ids)
    assert order == ([] if again == "back" else [0, 1])
    await desk.run(holders)
    assert await drained(desk, ids) == list(range(6))
    await desk.sound()


async def test_removal_amid_a_regrouping_lets_all_start(desk: Desk) -> None:
    await desk.open(TWO)
    await interleaved(desk, 2)
    ids = await interleaved(desk, 6)
    await desk.apply(EACH)
    await regroup_and_wake(desk)
    await desk.session.fetch("delete from catalog where kind = 'limit' returning 1")
    await desk.apply(Limit(1, ref="mail.other", scope="mail"))
    await desk.tidy()
    assert await desk.scheduled(ids) == list(range(6))
    assert not await desk.session.fetch("select from wake union all select from lane")
    await desk.sound()


async def test_other_turns_hold_for_waiting_executions(desk: Desk) -> None:
    """The groups of a limit change from customers to regions, and its lanes keep their keys."""
    await desk.open(Limit(1, ref="shop.one", scope="shop", fair="customer"))
    ids = await desk.start(1, customer="acme", region="x")
    for customer, region in (("acme", "x"), ("bolt", "x"), ("acme", "y"), ("bolt", "y")):
        ids += await desk.start(1, customer=customer, region=region)
    await desk.apply(Limit(1, ref="shop.one", scope="shop", fair="region"))
    await desk.tidy()
    ids += await desk.start(1, customer="bolt", region="z")
    assert await drained(desk, ids) == [0, 1, 3, 5, 2, 4]
    await desk.sound()


async def test_turns_within_a_group_follow_the_old_places(desk: Desk) -> None:
    """One group comes from lanes of two actions."""
    await desk.open(TWO)
    holders = await interleaved(desk, 2)
    ids = await interleaved(desk, 8, region="x")
    await desk.apply(Limit(1, ref="shop.two", scope="shop", by="customer", fair="region"))
    await started(desk, ids)
    await desk.run(holders)
    assert await drained(desk, ids) == list(range(8))
    await desk.sound()


async def test_rate_counts_starts_after_the_last_lane(desk: Desk) -> None:
    await desk.open(Limit(2, ref="shop.two", scope="shop"))
    await interleaved(desk, 2)
    ids = await interleaved(desk, 6)
    await desk.apply(Limit(rate="3/hour", ref="shop.two", scope="shop", by="customer"))
    assert await started(desk, ids) == [0, 1, 2]
    await desk.tidy()
    assert await desk.scheduled(ids) == [0, 1, 2]
    await desk.sound()


async def test_budget_is_reserved_in_order(desk: Desk) -> None:
    """A key of a budget belongs to the unit, and not to the limit by the budget."""
    await desk.open(TOKENS, Limit(1, ref="shop.each", scope="shop.charge"))
    top = await root(desk, 4)
    ids = await children(desk, top, 1, 3)
    assert await desk.statuses(ids) == ["scheduled", "queued"]
    await desk.apply(Limit(1, ref="shop.each", scope="shop.charge", by="customer"))
    ids += await children(desk, top, 3, ref="shop.refund")
    assert await desk.statuses(ids) == ["scheduled", "queued", "queued"]
    await desk.tidy()
    assert await desk.statuses(ids) == ["scheduled", "scheduled", "queued"]
    await desk.sound()
