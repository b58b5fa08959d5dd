"""Batches: what one message brings, all kinds mixed, while others hold its rows, its worker or its limits."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from uuid import UUID

import pytest

from penstock import Limit
from penstock.language.terms.ids import new_id
from tests.penstock.store.admission.desk import Desk, blocked, drained, later

ONE = Limit(1, ref="shop.one", scope="shop")


async def test_two_overlapping_mixed_batches_do_not_lock_each_other_out(desk: Desk) -> None:
    await desk.open(Limit(5, ref="shop.five", scope="shop"))
    [mail_b] = await desk.request(1, "mail.send")
    [charge] = await desk.request(1, "shop.charge")
    [mail_a] = await desk.request(1, "mail.send")
    [mail] = await desk.request(1, "mail.send")
    assert mail_b < charge < mail_a < mail
    failed: list[BaseException] = []

    async def admit(ids: Sequence[UUID]) -> None:
        try:
            async with desk.database.session().transaction() as tx:
                await desk.admit(ids, tx)
        except Exception as error:
            failed.append(error)

    async with desk.database.session().transaction() as tx:
        await tx.fetch("select id from execution where id = $1 for no key update", mail_a)
        one = asyncio.ensure_future(admit([charge, mail_a, mail]))
        await blocked(desk)
        other = asyncio.ensure_future(admit([mail_b, charge, mail]))
        await asyncio.sleep(0.3)
    await asyncio.gather(one, other)
    assert not failed, failed


async def test_an_execution_without_a_worker_is_not_overtaken_in_lane(desk: Desk) -> None:
    await desk.open(ONE, worker=False)
    old = await desk.start(3)
    assert await desk.statuses(old) == ["queued"] * 3
    await desk.hire("shop.charge")
    # the wake row is there; its loop has not come yet
    new = await desk.start(1)
    await desk.tidy()
    assert await desk.scheduled(old + new) == [0]


async def test_a_regrouped_execution_is_not_overtaken_in_its_lane(desk: Desk) -> None:
    await desk.open(ONE)
    old = await desk.start(3)
    await desk.claim(old[:1])
    await desk.apply(Limit(9, ref="mail.nine", scope="shop"))
    await desk.session.fetch("delete from catalog where ref = 'mail.nine' returning 1")
    await desk.apply(Limit(3, ref="mail.three", scope="mail"))
    await desk.finish(old[:1])
    new = await desk.start(1)
    await desk.tidy()
    assert await desk.scheduled(old + new) == [1]


@pytest.mark.parametrize("moved", [0, 1, 2], ids=["before", "amid", "late"])
async def test_new_start_waits_behind_a_line_that_is_regrouped(desk: Desk, moved: int) -> None:
    await desk.open(ONE)
    old = await desk.start(5)
    await desk.apply(Limit(1, ref="shop.one", scope="shop", by="customer"))
    for _ in range(moved):
        assert await desk.session.fetch("select 1 from regroup(2) where regrouped")
    new = await desk.start(2)
    await desk.run(new_first := [id for id in old if (await desk.statuses([id])) == ["scheduled"]])
    late = await desk.start(1)
    ids = [id for id in old if id not in new_first] + new + late
    assert not set(await desk.scheduled(ids)) & {*range(len(ids) - 3, len(ids))}
    await desk.tidy()
    assert await drained(desk, ids) == list(range(len(ids)))
    await desk.sound()


async def test_retry_waits_behind_a_line_that_is_regrouped(desk: Desk) -> None:
    await desk.open(ONE)
    ids = await desk.start(5)
    await desk.claim(ids[:1])
    await desk.apply(Limit(1, ref="shop.one", scope="shop", by="customer"))
    assert await desk.session.fetch("select 1 from regroup(2) where regrouped")
    await desk.finish(ids[:1], "requested", delay=0)
    assert await desk.scheduled(ids) == []
    await desk.tidy()
    assert await drained(desk, ids) == [1, 2, 3, 4, 0]
    await desk.sound()


async def test_a_worker_that_comes_while_an_execution_queues_wakes_it(desk: Desk) -> None:
    await desk.open(ONE, worker=False)
    ids = await desk.request(1)
    async with desk.database.session().transaction() as tx:
        await desk.admit(ids, tx)  # stands before worker:N, not committed
        await desk.hire("shop.charge")
        await desk.tidy()  # the wake row is taken; no execution is seen there
    await desk.tidy()
    await desk.session.fetch("select * from notice_workers()")  # as a loop does
    await desk.tidy()
    new = await desk.start(1)  # and an execution that comes later
    await desk.tidy()
    assert await desk.statuses(ids + new) == ["scheduled", "queued"]
    await desk.sound()


async def test_fair_turns_before_another_gate_do_not_look_like_a_wrong_order(desk: Desk) -> None:
    await desk.open(
        Limit(90, ref="shop.fair", scope="shop.charge", fair="customer"), Limit(3, ref="ops.all", scope="*")
    )
    ids = await desk.start(8, customer="big")
    ids += await desk.start(2, customer="small")
    assert len(await desk.scheduled(ids)) == 3
    assert len(await drained(desk, ids)) == 10
    await desk.sound()


@pytest.mark.parametrize(("count", "max"), [(1600, 1500), (1600, 1700)])
async def test_no_more_are_refused_than_do_not_fit_however_many_come(
    desk: Desk, count: int, max: int
) -> None:
    await desk.open(Limit(max, ref="shop.many", scope="shop", when_full="cancel_new"))
    ids = await desk.request(count)
    await desk.admit(ids)
    await desk.tidy()
    assert Counter(await desk.statuses(ids))["scheduled"] == min(count, max)


async def test_no_more_are_refused_than_do_not_fit_with_two_limits(desk: Desk) -> None:
    await desk.open(
        Limit(550, ref="shop.many", scope="shop", when_full="cancel_new"),
        Limit(9000, ref="shop.wide", scope="shop.charge"),
    )
    ids = await desk.request(600)
    await desk.admit(ids)
    await desk.tidy()
    assert Counter(await desk.statuses(ids))["scheduled"] == 550


async def test_an_unknown_repeated_or_done_id_does_not_disturb_others(desk: Desk) -> None:
    await desk.open(Limit(3, ref="shop.three", scope="shop"), Limit(2, ref="shop.two", scope="shop.charge"))
    session = desk.session
    sql = "select * from schedule_executions($1::uuid[])"
    await session.fetch(sql, [])
    ids = await desk.request(2) + await desk.request(2, "mail.send") + await desk.request(2, "shop.refund")
    await session.fetch(sql, [new_id()])
    await desk.cancel([ids[0]])
    odd = [ids[0], ids[1], ids[1], new_id(), *ids[2:], *reversed(ids)]
    await session.fetch(sql, odd)
    assert await desk.statuses(ids) == ["cancelled"] + ["scheduled"] * 5
    await session.fetch(sql, odd)
    assert sorted((await desk.slots()).values()) == [1, 3]
    more = await desk.request(3)
    await session.fetch(sql, [more[2], more[0], more[1], more[0], more[2]])
    assert await desk.statuses(more) == ["queued"] * 3
    await desk.sound()


async def test_of_a_batch_as_many_start_as_the_rate_allows(desk: Desk) -> None:
    await desk.open(
        Limit(rate="4/min", ref="shop.rated", scope="shop"),
        Limit(3, ref="shop.each", scope="shop.charge", by="customer"),
    )
    a = await desk.request(3, customer="a")
    await desk.admit(a)
    assert len(await desk.scheduled(a)) == 3
    b = await desk.request(3, customer="b")
    await desk.admit(b)
    assert await desk.scheduled(b) == [0]
    c = await desk.request(1, "shop.refund")
    await desk.admit(c)
    assert await desk.scheduled(c) == []
    await desk.run(a)
    await later(desk, 61)
    await desk.tidy()
    assert len(await desk.scheduled(b + c)) == 4
    await desk.sound()


async def test_a_wait_that_becomes_due_between_two_statements_is_begun(desk: Desk) -> None:
    await desk.open(ONE)
    [first] = await desk.request(1, "mail.send")
    [wait] = await desk.request(1, "mail.send")
    [[space]] = await desk.session.fetch(
        "insert into namespace (name, action, kind) values ('public::core::sleep', 'core.sleep', 'wait') returning id"
    )
    await desk.session.fetch(
        "update execution set namespace_id = $2, not_before = now() + interval '1 hour' where id = $1 returning 1",
        wait,
        space,
    )
    async with desk.database.session().transaction() as tx:
        await tx.fetch("select id from execution where id = $1 for no key update", first)
        task = asyncio.ensure_future(desk.admit([first, wait], desk.database.session()))
        await blocked(desk)
        await desk.session.fetch("update execution set not_before = null where id = $1 returning 1", wait)
    await task
    assert await desk.statuses([wait]) == ["waiting"]
