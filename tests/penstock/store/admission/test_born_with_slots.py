"""Executions under limits that are born with their slots: their rows, and the sessions that have to ask for them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import UUID

import pytest

from penstock import Limit
from penstock.language.terms.ids import new_id
from tests.penstock.store.admission.desk import SUBMIT, Desk, racing

ONE = Limit(1, ref="shop.one", scope="shop")
EACH = Limit(2, ref="shop.each", scope="shop.charge", by="customer")
FEW, MANY = 10, 100
"""Of so many that are submitted the rest can be put in line, and of so many any can be born with slots."""


def of(*customers: int) -> list[dict[str, int]]:
    return [{"customer": one} for one in customers]


async def history(desk: Desk, id: UUID) -> list[tuple[str | None, str]]:
    rows = await desk.session.fetch("select old, new from history where execution_id = $1 order by at", id)
    return [(row["old"], row["new"]) for row in rows]


@pytest.mark.parametrize("count", [1, FEW, FEW + 1, MANY])
async def test_an_execution_that_finds_room_is_born_with_its_slots(desk: Desk, count: int) -> None:
    await desk.open(EACH, Limit(MANY, ref="ops.all", scope="*"))
    ids, asked = await desk.submit_group(of(*range(count)))
    assert not asked
    assert await desk.scheduled(ids) == list(range(count))
    assert await history(desk, ids[-1]) == [(None, "requested"), ("requested", "scheduled")]
    assert sum((await desk.slots()).values()) == 2 * count
    rows = await desk.session.fetch(
        "select a.execution_id, cardinality(e.keys) as keys, a.ready_at = e.ready_at as same, a.attempt, a.held, a.allowed "
        "from admission a join execution e on e.id = a.execution_id join concurrency_limit l on l.id = a.limit_id "
        "where l.ref = 'ops.all' order by a.held"
    )
    assert [tuple(row) for row in rows] == [(id, 2, True, 1, n + 1, MANY) for n, id in enumerate(ids)]
    queues = await desk.session.fetch("select distinct queue from outbox")
    assert [row["queue"] for row in queues] == ["work.default"]
    await desk.sound()
    await desk.run(ids)
    assert await desk.slots() == {}


async def test_of_more_an_executor_decides(desk: Desk) -> None:
    await desk.open(EACH)
    ids, asked = await desk.submit_group(of(*range(MANY + 1)))
    assert asked == ids
    assert set(await desk.statuses(ids)) == {"requested"}
    await desk.admit(asked)
    assert await desk.scheduled(ids) == list(range(MANY + 1))
    await desk.sound()


async def test_of_a_few_those_without_room_stand_in_line_at_once(desk: Desk) -> None:
    await desk.open(EACH)
    ids, asked = await desk.submit_group(of(1, 1, 1, 2))
    assert not asked
    assert await desk.statuses(ids) == ["scheduled", "scheduled", "queued", "scheduled"]
    assert await history(desk, ids[2]) == [(None, "requested"), ("requested", "queued")]
    await desk.run(ids[:1])
    assert await desk.scheduled(ids) == [1, 2, 3]
    await desk.sound()


@pytest.mark.parametrize("standing", [False, True], ids=["too many for the room", "others in line"])
async def test_of_many_those_without_room_are_left_to_an_executor(desk: Desk, standing: bool) -> None:
    await desk.open(EACH)
    old = await desk.start(3 if standing else 1, customer=0)
    ids, asked = await desk.submit_group(of(0, *range(FEW), 0))
    waiting = [0, 1, FEW + 1]
    assert asked == [ids[n] for n in waiting]
    assert await desk.scheduled(ids) == list(range(2, FEW + 1))
    await desk.admit(asked)
    assert await desk.statuses([ids[n] for n in waiting]) == (
        ["queued"] * 3 if standing else ["scheduled", "queued", "queued"]
    )
    await desk.run(old[:1])
    await desk.sound()


@pytest.mark.parametrize("count", [2, FEW + 2])
async def test_a_held_lock_is_waited_for_only_a_moment(desk: Desk, count: int) -> None:
    await desk.open(EACH)
    async with desk.database.session().transaction() as tx:
        await tx.fetch(
            "select lock_keys(array[(id, jsonb_build_array(1)::text)::limit_key]) from concurrency_limit"
        )
        ids, asked = await asyncio.wait_for(desk.submit_group(of(*range(count))), 10)
        assert asked == ids
        assert await desk.slots() == {}
    await desk.admit(asked)
    assert await desk.scheduled(ids) == list(range(count))


async def test_while_limits_are_being_changed_an_executor_is_asked(desk: Desk) -> None:
    await desk.open(EACH)
    async with desk.database.session().transaction() as tx:
        await tx.fetch("select pg_advisory_xact_lock(7, -1)")
        ids, asked = await asyncio.wait_for(desk.submit_group(of(1)), 10)
    assert asked == ids


async def test_two_submits_at_once_do_not_both_get_the_last_slot(desk: Desk) -> None:
    await desk.open(ONE)
    first, second = desk.database.session(), desk.database.session()
    for _ in range(5):
        submits = await asyncio.gather(
            desk.submit_group(of(1), session=first), desk.submit_group(of(1), session=second)
        )
        ids = [id for made, _ in submits for id in made]
        await desk.admit([id for _, asked in submits for id in asked])
        assert await desk.slots() == {(1, ""): 1}
        await desk.sound()
        while now := await desk.scheduled(ids):
            await desk.run([ids[n] for n in now])


async def test_an_execution_born_as_the_holder_leaves_gets_the_slot(desk: Desk) -> None:
    await desk.open(ONE)
    [holder] = await desk.start(1)
    await desk.claim([holder])
    made: list[UUID] = []

    async def submit() -> None:
        ids, asked = await desk.submit_group(of(1), session=desk.database.session())
        made.extend(ids)
        await desk.admit(asked)  # where it had to wait for longer than it may

    await racing(desk, lambda tx: desk.finish([holder], session=tx), submit())
    assert await desk.statuses(made) == ["scheduled"]
    await desk.sound()


async def test_an_existing_execution_takes_no_slot(desk: Desk) -> None:
    await desk.open(EACH)
    [known], _ = await desk.submit_group(of(1))
    [row] = await desk.session.fetch("select namespace_id, definition_id from execution")
    new = new_id()

    async def submit(ids: Sequence[UUID]) -> None:
        count = len(ids)
        await desk.session.fetch(
            SUBMIT, list(ids), [row["namespace_id"]] * count, [row["definition_id"]] * count, ['{"customer": 2}'] * count,
            [0] * count,
        )  # fmt: skip

    await submit([known])
    await submit([known, new])
    assert sorted((await desk.slots()).values()) == [1, 1]
    assert await desk.scheduled([known, new]) == [0, 1]
    assert await history(desk, known) == [(None, "requested"), ("requested", "scheduled")]
    await desk.sound()


async def test_work_that_no_live_worker_runs_waits_in_line(desk: Desk) -> None:
    await desk.open(EACH, worker=False)
    ids, asked = await desk.submit_group(of(1))
    assert not asked
    assert await desk.statuses(ids) == ["queued"]
    await desk.hire("shop.charge")
    await desk.tidy()
    assert await desk.scheduled(ids) == [0]
