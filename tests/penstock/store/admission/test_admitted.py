"""The records of an admission: its instant, the log of admissions, and the deadline for a worker to start it."""

from __future__ import annotations

import pytest

from penstock import Limit
from tests.penstock.store.admission.desk import Desk

ONE = Limit(1, ref="shop.one", scope="shop")
FAIR = Limit(1, ref="shop.fair", scope="shop", fair="customer")
ALL = Limit(1, ref="ops.all", scope="*")
WIDE = Limit(9, ref="shop.wide", scope="shop", fair="customer")
STOOD = """
select greatest(w.since, l.moved_at) as since from waiter w join lane l on l.id = w.lane where w.execution_id = $1
"""
LOGGED = """
select a.since from admission a join concurrency_limit l on l.id = a.limit_id where a.execution_id = $1 and l.ref = $2
"""


async def test_an_execution_admitted_from_the_line_waits_since_then(desk: Desk) -> None:
    await desk.open(ONE)
    [first], [second] = await desk.start(1), await desk.start(1)
    await desk.run([first])
    rows = await desk.session.fetch(
        "select id, since > clock_timestamp() - interval '1 minute' as now from execution"
    )
    assert {row["id"]: row["now"] for row in rows} == {first: None, second: True}


@pytest.mark.parametrize(
    ("limits", "known"),
    [((ONE,), True), ((FAIR,), True), ((ALL, WIDE), False)],
    ids=["one", "fair", "turns of another"],
)
async def test_the_log_says_since_when_it_stood_there_unless_it_stood_in_the_turns_of_another(
    desk: Desk, limits: tuple[Limit, ...], known: bool
) -> None:
    await desk.open(*limits)
    [first], [second] = await desk.start(1, customer="a"), await desk.start(1, customer="b")
    stood = await desk.session.fetch(STOOD, second)
    await desk.run([first])
    assert (await desk.session.fetch(LOGGED, second, limits[0].ref) == stood) is known


async def test_the_log_has_its_turn_among_the_groups_of_the_limit(desk: Desk) -> None:
    await desk.open(FAIR)
    first, second, third = await desk.start(3, customer="a")
    [[turn]] = await desk.session.fetch("select turn from waiter where execution_id = $1", third)
    for id in (first, second):
        await desk.run([id])
    [[logged]] = await desk.session.fetch("select turn from admission where execution_id = $1", third)
    assert logged == turn != 0


async def test_the_log_says_that_it_stood_there_only_since_it_came_from_another_gate(desk: Desk) -> None:
    await desk.open(
        Limit(1, ref="shop.each", scope="shop.charge", by="customer"), Limit(2, ref="shop.two", scope="shop")
    )
    [first] = await desk.start(1, customer="a")
    [moves] = await desk.start(
        1, customer="a"
    )  # before the customer's limit: under the other one there is room
    [younger] = await desk.start(1, "shop.refund")
    [urgent] = await desk.start(1, "shop.refund", priority=5)
    await desk.run([first])
    assert await desk.statuses([moves, younger, urgent]) == ["queued", "scheduled", "scheduled"]
    stood = await desk.session.fetch(STOOD, moves)
    await desk.run([urgent])
    assert await desk.statuses([moves]) == ["scheduled"]
    assert await desk.session.fetch(LOGGED, moves, "shop.two") == stood
    await desk.sound()


async def test_a_worker_has_to_start_an_admitted_execution_in_time(desk: Desk) -> None:
    await desk.open(ONE)
    [first], [second] = await desk.start(1), await desk.start(1)
    await desk.session.fetch('update payload set options = \'{"timeouts": {"schedule_to_start": 60}}\'')
    await desk.session.fetch("update execution set timed = true")
    await desk.run([first])
    timers = await desk.session.fetch("select execution_id, kind from timer")
    assert [tuple(row) for row in timers] == [(second, "start")]
