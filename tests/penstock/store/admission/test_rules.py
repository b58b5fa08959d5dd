"""The rules of a limit: its conduct when it is full, its rate, and its turns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from random import Random
from uuid import UUID

import pytest

from penstock import Limit
from tests.penstock.store.admission.desk import Desk, drained, later

ONE = Limit(1, ref="shop.one", scope="shop")


async def test_a_rate_lets_in_so_many_within_its_window(desk: Desk) -> None:
    await desk.open(Limit(rate="2/min", ref="shop.rated", scope="shop"))
    ids = await desk.start(7)
    await desk.tidy()
    assert await desk.scheduled(ids) == [0, 1]
    await later(desk, 59)
    await desk.tidy()
    assert await desk.scheduled(ids) == [0, 1]
    await later(desk, 2)
    await desk.tidy()
    # No execution has ended: the window alone admits them, and a wake row waits for the next one.
    assert await desk.scheduled(ids) == [0, 1, 2, 3]
    await later(desk, 61)
    await desk.tidy()
    assert await desk.scheduled(ids) == [0, 1, 2, 3, 4, 5]
    await desk.run([ids[n] for n in range(6)])
    await desk.tidy()
    assert await desk.scheduled(ids) == []
    await later(desk, 61)
    await desk.tidy()
    assert await desk.scheduled(ids) == [6]
    await desk.sound()


PLAIN_RATE = Limit(rate="2/min", ref="shop.rated", scope="shop")
WEIGHTED_RATE = Limit(
    2, per="1m", ref="shop.rated", scope="shop", cost="{{ parameters.customer }}", unit="calls"
)


@pytest.mark.parametrize("limit", [PLAIN_RATE, WEIGHTED_RATE], ids=["plain", "weighted"])
async def test_rate_goes_on_after_the_clock_went_back(desk: Desk, limit: Limit) -> None:
    await desk.open(limit)
    ids = await desk.start(4, customer=1)
    await desk.tidy()
    assert await desk.scheduled(ids) == [0, 1]
    await later(desk, -3600)
    await desk.tidy()
    await later(desk, 61)
    await desk.tidy()
    assert await desk.scheduled(ids) == [0, 1, 2, 3]
    ids += await desk.start(1, customer=1)
    await desk.tidy()
    assert await desk.scheduled(ids) == [0, 1, 2, 3]
    await later(desk, 61)
    await desk.tidy()
    assert await desk.scheduled(ids) == [0, 1, 2, 3, 4]
    await desk.sound()


@pytest.mark.parametrize("limit", [PLAIN_RATE, WEIGHTED_RATE], ids=["plain", "weighted"])
async def test_clock_that_goes_back_a_little_lets_none_exceed_the_rate(desk: Desk, limit: Limit) -> None:
    await desk.open(limit)
    ids = await desk.start(4, customer=1)
    await desk.tidy()
    await later(desk, -30)
    ids += await desk.start(1, customer=1)
    await desk.tidy()
    assert await desk.scheduled(ids) == [0, 1]
    await later(desk, 91)
    await desk.tidy()
    assert await desk.scheduled(ids) == [0, 1, 2, 3]
    await desk.sound()


async def test_a_rate_with_another_limit_holds_too(desk: Desk) -> None:
    await desk.open(
        Limit(rate="2/min", ref="shop.rated", scope="shop"),
        Limit(1, ref="shop.each", scope="shop.charge", by="customer"),
    )
    ids = [(await desk.start(1, customer=customer))[0] for customer in "aabbc"]
    assert await desk.scheduled(ids) == [0, 2]
    await later(desk, 61)
    await desk.tidy()
    assert await desk.scheduled(ids) == [0, 2, 4]
    await desk.run([ids[0], ids[2]])
    await desk.tidy()
    assert await desk.scheduled(ids) == [1, 4]
    await later(desk, 61)
    await desk.tidy()
    assert await desk.scheduled(ids) == [1, 3, 4]
    await desk.sound()


async def test_a_burst_is_admitted_at_once_and_the_rate_stays(desk: Desk) -> None:
    await desk.open(Limit(rate="60/min", burst=5, ref="shop.rated", scope="shop"))
    ids = await desk.start(12)
    assert len(await desk.scheduled(ids)) == 5
    await later(desk, 5)
    await desk.tidy()
    assert len(await desk.scheduled(ids)) == 10


async def test_a_full_limit_refuses_if_it_is_so_declared(desk: Desk) -> None:
    await desk.open(Limit(2, ref="shop.two", scope="shop", when_full="cancel_new"))
    ids = await desk.start(4)
    assert await desk.statuses(ids) == ["scheduled", "scheduled", "cancelled", "cancelled"]
    assert set(await desk.reasons(ids[2:])) == {"refused: the limit shop.two is full"}
    await desk.run(ids[:1], "requested")
    await desk.admit(ids[:1])
    assert await desk.statuses(ids[:1]) == ["scheduled"]
    await desk.sound()


async def test_a_retry_is_never_refused(desk: Desk) -> None:
    await desk.open(Limit(1, ref="shop.one", scope="shop", when_full="cancel_new"))
    [tried] = await desk.start(1)
    await desk.run([tried], "requested", delay=0.5)
    [other] = await desk.start(1)
    await desk.retry([tried])
    assert await desk.statuses([tried, other]) == ["queued", "scheduled"]
    await desk.run([other])
    assert await desk.statuses([tried]) == ["scheduled"]
    await desk.sound()


async def test_no_more_wait_than_may(desk: Desk) -> None:
    await desk.open(Limit(1, ref="shop.one", scope="shop", max_waiting=2))
    ids = await desk.start(5)
    assert await desk.statuses(ids) == ["scheduled", "queued", "queued", "cancelled", "cancelled"]
    assert await desk.reasons(ids[3:4]) == ["refused: 2 already wait for the limit shop.one"]
    batch = await desk.request(3)
    await desk.run(ids[:1])
    await desk.admit(batch)
    assert await desk.statuses(batch) == ["queued", "cancelled", "cancelled"]
    await desk.sound()


async def test_the_oldest_gives_way_gracefully(desk: Desk) -> None:
    await desk.open(Limit(1, ref="shop.one", scope="shop", when_full="cancel_running"))
    [first] = await desk.start(1)
    await desk.claim([first])
    [second] = await desk.start(1)
    await desk.timers()
    assert await desk.statuses([first, second]) == ["canceling", "queued"]  # the slot is held to the end
    await desk.finish([first], "cancelled")
    assert await desk.statuses([first, second]) == ["cancelled", "scheduled"]
    [third] = await desk.start(1)
    await desk.timers()
    assert await desk.statuses([second, third]) == ["cancelled", "scheduled"]
    await desk.sound()


async def test_older_execution_without_a_slot_gives_way_to_an_admitted_one(desk: Desk) -> None:
    await desk.open(Limit(1, ref="shop.one", scope="shop", when_full="cancel_running"))
    first, second = await desk.start(1), await desk.request(1)
    await desk.run(first, "waiting")
    await desk.admit(second)
    await desk.timers()
    assert await desk.statuses([*first, *second]) == ["cancelled", "scheduled"]
    await desk.sound()


async def test_groups_take_turns_however_many_one_has(desk: Desk) -> None:
    await desk.open(Limit(1, ref="shop.one", scope="shop", fair="customer"))
    ids = await desk.start(6, customer="big")
    ids += await desk.start(2, customer="small")
    ids += await desk.start(1, customer="late")
    assert await drained(desk, ids) == [0, 1, 6, 8, 2, 7, 3, 4, 5]
    await desk.sound()


async def test_turns_are_taken_across_actions_and_within_a_priority(desk: Desk) -> None:
    await desk.open(Limit(1, ref="shop.one", scope="shop", fair="customer"))
    ids = await desk.start(3, "shop.charge", customer="a")
    ids += await desk.start(2, "shop.refund", customer="a")
    ids += await desk.start(2, "shop.refund", customer="b")
    ids += await desk.start(1, "shop.charge", priority=9, customer="a")
    assert await drained(desk, ids) == [0, 7, 1, 5, 2, 6, 3, 4]
    await desk.sound()


async def test_groups_take_turns_for_each_key_apart(desk: Desk) -> None:
    await desk.open(Limit(1, ref="shop.each", scope="shop", by="region", fair="customer"))
    ids = await desk.start(4, customer="big", region="x")
    ids += await desk.start(1, customer="small", region="x")
    ids += await desk.start(2, customer="big", region="y")
    ids += await desk.start(1, customer="small", region="y")
    # That one has many waiting in the one region does not count in the other one.
    assert await drained(desk, ids) == [0, 5, 1, 6, 4, 7, 2, 3]
    await desk.sound()


async def test_turns_of_one_limit_are_kept_where_another_one_is_the_bottleneck(desk: Desk) -> None:
    await desk.open(
        Limit(9, ref="shop.fair", scope="shop.charge", fair="customer"), Limit(1, ref="ops.all", scope="*")
    )
    ids = await desk.start(4, customer="big")
    ids += await desk.start(1, customer="small")
    assert await drained(desk, ids) == [0, 1, 4, 2, 3]
    await desk.sound()


async def test_of_two_limits_a_slot_of_each_is_held(desk: Desk) -> None:
    await desk.open(
        Limit(1, ref="shop.each", scope="shop.charge", by="customer"),
        Limit(2, ref="shop.whole", scope="shop"),
    )
    ids = [(await desk.start(1, customer=customer))[0] for customer in "aaabc"]
    assert await desk.scheduled(ids) == [0, 3]
    await desk.run([ids[3]])
    # The second a stands first but for the pack's slot alone: the third customer needs nothing else and goes.
    assert await desk.scheduled(ids) == [0, 4]
    assert await drained(desk, ids) == [0, 4, 1, 2]
    await desk.sound()


async def test_in_one_message_the_older_that_needs_two_slots_goes_before_the_younger_that_needs_one(
    desk: Desk,
) -> None:
    await desk.open(
        Limit(1, ref="shop.each", scope="shop.charge", by="customer"),
        Limit(1, ref="shop.whole", scope="shop"),
    )
    ids = await desk.request(1, customer="a")
    ids += await desk.request(1, "shop.refund")
    await desk.admit(ids)
    assert await desk.scheduled(ids) == [0]
    await desk.sound()


async def test_work_without_a_live_worker_lets_the_rest_pass(desk: Desk) -> None:
    worker = await desk.hire("shop.refund")
    await desk.open(ONE, worker=False)
    first = await desk.start(2, "shop.charge")
    other = await desk.start(2, "shop.refund")
    assert await desk.statuses(first + other) == ["queued", "queued", "scheduled", "queued"]
    charger = await desk.hire("shop.charge")
    await desk.tidy()
    desk.worker = worker
    await desk.run(other[:1])
    assert await desk.scheduled(first + other) == [0]
    await desk.dismiss(charger)
    # Its worker left before it was claimed: the slot comes back, and the next one starts.
    await desk.session.fetch("select * from return_unclaimed(interval '0', 100)")
    await desk.admit(first[:1])
    assert await desk.statuses(first + other) == ["queued", "queued", "completed", "scheduled"]
    await desk.sound()


async def test_when_a_worker_comes_all_lanes_go_on_part_by_part(desk: Desk) -> None:
    await desk.open(Limit(1, ref="shop.each", scope="shop", by="customer"), worker=False)
    ids = [(await desk.start(1, customer=n))[0] for n in range(7)]
    await desk.hire("shop.charge")
    started = []
    while await desk.session.fetch("select 1 from wake_keys(2) where woken"):
        started.append(len(await desk.scheduled(ids)))
    assert started[0] == 2
    assert await desk.scheduled(ids) == list(range(7))
    await desk.sound()


async def test_an_inquiry_keeps_its_slot_if_the_limit_is_so_declared(desk: Desk) -> None:
    await desk.open(Limit(1, ref="shop.one", scope="shop", while_waiting="keep"))
    ids = await desk.start(2)
    await desk.run(ids[:1], "waiting")
    assert await desk.statuses(ids) == ["waiting", "queued"]
    await desk.session.fetch("select * from answer_inquiry($1, '1', 'somebody')", ids[0])
    assert await desk.statuses(ids) == ["completed", "scheduled"]
    await desk.sound()


ORDERS = [(0, 1), (1, 0)]
"""The orders in which two limits are stored: the first of them is the gate of a new lane."""


async def open_in_order(desk: Desk, order: Sequence[int], whole: Limit, each: Limit) -> None:
    """Apply two limits, one after another."""
    await desk.open()
    for limit in [(whole, each)[n] for n in order]:
        await desk.apply(limit)


@pytest.mark.parametrize("order", ORDERS)
async def test_full_limit_refuses_behind_another_gate(desk: Desk, order: Sequence[int]) -> None:
    await open_in_order(
        desk,
        order,
        Limit(2, ref="shop.whole", scope="shop"),
        Limit(1, ref="shop.each", scope="shop", by="customer", when_full="cancel_new"),
    )
    running = [*await desk.start(1, customer="ada"), *await desk.start(1, customer="bob")]
    assert await desk.statuses(running) == ["scheduled", "scheduled"]
    assert await desk.statuses(await desk.start(3, customer="ada")) == ["cancelled"] * 3
    # The limit of eve is not full. An execution that waits elsewhere takes of its room.
    ids = await desk.start(2, "shop.refund", customer="eve")
    ids += await desk.start(1, customer="eve")
    assert await desk.statuses(ids) == ["queued", "cancelled", "cancelled"]
    assert await desk.reasons(ids[1:]) == ["refused: the limit shop.each is full"] * 2
    batch = await desk.request(3, customer="dan")
    await desk.admit(batch)
    assert await desk.statuses(batch) == ["queued", "cancelled", "cancelled"]
    await desk.run(running[:1])
    assert await desk.statuses([ids[0], batch[0]]) == ["scheduled", "queued"]
    await desk.sound()


@pytest.mark.parametrize("order", ORDERS)
async def test_no_more_wait_behind_another_gate_than_may(desk: Desk, order: Sequence[int]) -> None:
    await open_in_order(
        desk,
        order,
        Limit(1, ref="shop.whole", scope="shop"),
        Limit(1, ref="shop.each", scope="shop", by="customer", max_waiting=2),
    )
    await desk.start(1, customer="ada")
    ids = await desk.start(4, customer="ada")
    assert await desk.statuses(ids) == ["queued", "queued", "cancelled", "cancelled"]
    others = await desk.start(5, customer="bob")  # one of them would start but for the other limit
    assert await desk.statuses(others) == ["queued"] * 3 + ["cancelled"] * 2
    await desk.sound()


@pytest.mark.parametrize("order", ORDERS)
async def test_the_oldest_gives_way_behind_another_gate(desk: Desk, order: Sequence[int]) -> None:
    await open_in_order(
        desk,
        order,
        Limit(1, ref="shop.whole", scope="shop"),
        Limit(1, ref="shop.each", scope="shop", by="customer", when_full="cancel_running"),
    )
    await desk.start(1, customer="bob")
    ids = await desk.start(3, customer="ada")
    await desk.timers()
    assert await desk.statuses(ids) == ["cancelled", "cancelled", "queued"]
    await desk.sound()


async def test_limits_decide_while_no_worker_has_the_action(desk: Desk) -> None:
    await desk.open(
        Limit(1, ref="shop.new", scope="shop.charge", by="customer", when_full="cancel_new"),
        Limit(1, ref="shop.few", scope="shop.refund", by="customer", max_waiting=2),
        Limit(1, ref="shop.old", scope="mail.send", by="customer", when_full="cancel_running"),
        worker=False,
    )
    ids = [(await desk.start(1, customer=customer))[0] for customer in "aabab"]
    assert await desk.statuses(ids) == ["queued", "cancelled", "queued", "cancelled", "cancelled"]
    assert await desk.reasons(ids[1:2]) == ["refused: the limit shop.new is full"]
    few = await desk.start(2, "shop.refund", customer="a") + await desk.start(4, "shop.refund", customer="a")
    assert await desk.statuses(few) == ["queued"] * 3 + ["cancelled"] * 3
    assert await desk.reasons(few[3:4]) == ["refused: 2 already wait for the limit shop.few"]
    old = [(await desk.start(1, "mail.send", customer="a"))[0] for _ in range(3)]
    await desk.timers()
    assert await desk.statuses(old) == ["cancelled", "cancelled", "queued"]
    await desk.hire("shop.charge", "shop.refund", "mail.send")
    await desk.tidy()
    assert await desk.statuses([ids[0], ids[2], *few[:3], old[2]]) == [
        *["scheduled"] * 3,
        *["queued"] * 2,
        "scheduled",
    ]
    await desk.sound()


async def test_limits_decide_after_the_last_worker_has_left(desk: Desk) -> None:
    await desk.open(Limit(1, ref="shop.new", scope="shop.charge", when_full="cancel_new"))
    await desk.run(await desk.start(1))
    await desk.dismiss(desk.worker)
    ids = await desk.start(2)
    assert await desk.statuses(ids) == ["queued", "cancelled"]
    await desk.sound()


@pytest.mark.parametrize("seed", range(4))
async def test_refusals_agree_with_a_plain_count_with_and_without_a_worker(desk: Desk, seed: int) -> None:
    """Under `cancel_new` at most `max` of a customer wait or run. Under `max_waiting` so many more may wait."""
    random = Random(seed)
    await desk.open(
        Limit(2, ref="shop.new", scope="shop.charge", by="customer", when_full="cancel_new"),
        Limit(1, ref="shop.few", scope="shop.refund", by="customer", max_waiting=2),
    )
    worker, most = desk.worker, {"shop.charge": 2, "shop.refund": 3}
    open_ids: dict[tuple[str, str], list[UUID]] = defaultdict(list)
    lives = True
    for _ in range(40):
        key = random.choice([*most]), random.choice("ab")
        step = random.randrange(6)
        if step == 0 and lives:
            await desk.dismiss(worker)
            lives = False
        elif step == 0:
            worker, lives = await desk.hire("shop.charge", "shop.refund", "mail.send"), True
            await desk.tidy()
        elif step == 1 and lives and open_ids[key]:
            ended = open_ids[key].pop(0)
            await desk.run([ended])
        else:
            count = random.randint(1, 3)
            ids = await desk.start(count, key[0], customer=key[1])
            admitted = min(count, most[key[0]] - len(open_ids[key]))
            statuses = await desk.statuses(ids)
            assert ["cancelled" if status == "cancelled" else "open" for status in statuses] == [
                *["open"] * admitted,
                *["cancelled"] * (count - admitted),
            ]
            open_ids[key] += ids[:admitted]
    await desk.sound()


GO_ON = {
    "resume": ('{"prompt": "?"}', "select * from resume_asking($1, '1', 'answered')"),
    "wake": (
        '{"awaits": {"children": [], "signals": []}}',
        "select * from wake_functions(array[$1::uuid], 'its time')",
    ),
}
"""The ways in which an attempt waits and another one goes on: an inquiry, and a durable function."""


@pytest.mark.parametrize("way", GO_ON)
async def test_kept_slot_is_there_for_the_next_attempt(desk: Desk, way: str) -> None:
    asked, go_on = GO_ON[way]
    await desk.open(
        Limit(1, ref="shop.one", scope="shop", while_waiting="keep"), Limit(5, ref="shop.five", scope="shop")
    )
    ids = await desk.start(2)
    await desk.claim(ids[:1])
    await desk.finish(ids[:1], "waiting", asked=asked)
    await desk.tidy()
    assert await desk.statuses(ids) == ["waiting", "queued"]
    await desk.session.fetch(go_on, ids[0])
    assert await desk.statuses(ids) == ["scheduled", "queued"]
    await desk.sound()
    await desk.run(ids[:1])
    assert await desk.statuses(ids) == ["completed", "scheduled"]
    await desk.sound()


@pytest.mark.parametrize("way", GO_ON)
async def test_kept_slot_of_another_limit_is_given_back(desk: Desk, way: str) -> None:
    asked, go_on = GO_ON[way]
    five = Limit(5, ref="shop.five", scope="shop", while_waiting="keep")
    await desk.open(Limit(1, ref="shop.one", scope="shop"), five)
    ids = await desk.start(2)
    await desk.claim(ids[:1])
    await desk.finish(ids[:1], "waiting", asked=asked)
    await desk.apply(Limit(1, ref="shop.one", scope="shop", by="customer"))
    await desk.tidy()
    await desk.session.fetch(go_on, ids[0])
    await desk.tidy()
    assert sorted(await desk.statuses(ids)) == ["queued", "scheduled"]
    await desk.sound()


@pytest.mark.parametrize("way", GO_ON)
async def test_kept_slot_takes_one_start_of_a_rate(desk: Desk, way: str) -> None:
    asked, go_on = GO_ON[way]
    await desk.open(Limit(1, rate="1/hour", ref="shop.one", scope="shop", while_waiting="keep"))
    ids = await desk.start(2)
    await desk.claim(ids[:1])
    await desk.finish(ids[:1], "waiting", asked=asked)
    await desk.session.fetch(go_on, ids[0])
    assert await desk.statuses(ids) == ["scheduled", "queued"]
    await desk.run(ids[:1])
    assert await desk.statuses(ids) == ["completed", "queued"]
    await desk.sound()


async def test_start_waits_behind_lanes_to_regroup(desk: Desk) -> None:
    await desk.open(Limit(1, ref="shop.one", scope="shop"))
    [running] = await desk.start(1, customer="ada")
    await desk.claim([running])
    old = await desk.start(3, customer="ada")
    await desk.apply(Limit(1, ref="shop.one", scope="shop", by="customer"))
    ids = [*old, *await desk.start(3, customer="ada")]
    await desk.finish([running])
    assert await desk.scheduled(ids[3:]) == []
    await desk.tidy()
    assert await drained(desk, ids) == list(range(6))
    await desk.sound()


@pytest.mark.parametrize("by", [["customer"], ["customer", "region"]])
async def test_equal_numbers_are_one_key(desk: Desk, by: list[str]) -> None:
    await desk.open(Limit(1, ref="shop.each", scope="shop", by=by))
    ids = [(await desk.start(1, customer=n, region=2.50))[0] for n in (7, 7.0, 70, "7", 7e0, 0.7)]
    assert await desk.scheduled(ids) == [0, 2, 3, 5]
    await desk.sound()
