"""The order of executions that wait for a worker: by priority, by turns of the tenants, by age."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from penstock import Schedule, action
from penstock.language.workflows import from_body
from penstock.operate.why import why
from tests.flows.installation import AS_USED, Installation

BEGUN: list[int] = []
"""The numbers of the executions, in the order in which they began."""
GATE = asyncio.Event()


@action(pack="order")
async def hold(n: int) -> int:
    BEGUN.append(n)
    await GATE.wait()
    return n


@action(pack="order")
async def note(n: int) -> int:
    BEGUN.append(n)
    return n


chain = from_body(
    {
        "ref": "order.chain",
        "tasks": [
            {"name": "first", "action": "order.hold", "input": {"n": 1}},
            {"name": "second", "action": "order.note", "input": {"n": 2}, "needs": ["first"]},
        ],
    }
)


@pytest.fixture(autouse=True)
def fresh() -> None:
    BEGUN.clear()
    GATE.clear()


async def begin(house: Installation, *definitions: Any) -> None:
    """Start one worker with one slot, which is taken by the execution number 0."""
    await house.start(hold, note, *definitions, concurrency=1, **AS_USED)
    await house.client.start("order.hold", {"n": 0})
    await house.until("select from execution where status = 'running'")


async def test_start_with_a_priority_takes_the_next_slot(house: Installation) -> None:
    await begin(house)
    for n in range(1, 12):
        await house.client.start("order.note", {"n": n})
    await house.client.start("order.note", {"n": 99}, priority=9)
    GATE.set()
    await house.quiet()
    assert BEGUN[:2] == [0, 99]
    assert sorted(BEGUN[2:]) == list(range(1, 12))
    await house.sound()


async def test_fire_with_a_priority_takes_the_next_slot(house: Installation) -> None:
    urgent = Schedule("order.urgent", action=note, params={"n": 99}, every="1d", priority=9)
    await begin(house, urgent)
    for n in range(1, 6):
        await house.client.start("order.note", {"n": n})
    await house.client.schedules.run("order.urgent")
    GATE.set()
    await house.quiet()
    assert BEGUN[:2] == [0, 99]
    assert sorted(BEGUN[2:]) == list(range(1, 6))
    await house.sound()


async def test_fire_that_no_worker_begins_in_time_expires(house: Installation) -> None:
    await begin(house, Schedule("order.brief", action=note, params={"n": 98}, every=1, expires=0.5))
    await house.until("select from fire where outcome = 'timeout'")
    await house.client.schedules.delete("order.brief")
    await house.until("select from fire having count(*) filter (where outcome is null) = 0")
    GATE.set()
    await house.quiet()
    assert BEGUN == [0]
    rows = await house.rows("select outcome, error from fire")
    assert {tuple(row) for row in rows} == {("timeout", "timeout: it had not begun when it expired")}
    await house.sound()


async def test_lower_priorities_wait_for_starts_that_come_later(house: Installation) -> None:
    await begin(house)
    for n in range(1, 4):
        await house.client.start("order.note", {"n": n}, priority=-5)
    for n in range(10, 13):
        await house.client.start("order.note", {"n": n})
    GATE.set()
    await house.quiet()
    assert BEGUN == [0, 10, 11, 12, 1, 2, 3]


async def test_tenant_with_one_start_takes_the_next_slot(house: Installation) -> None:
    """Many starts of another tenant wait before it."""
    await begin(house)
    await house.client.start_many("order.note", [{"n": n} for n in range(1, 61)])
    await house.client.start("order.note", {"n": 999}, tenant="acme")
    GATE.set()
    await house.quiet()
    assert BEGUN[:2] == [0, 999]
    assert sorted(BEGUN[2:]) == list(range(1, 61))
    await house.sound()


async def test_next_step_waits_for_higher_priority(house: Installation) -> None:
    """A worker does not go on with a workflow where an execution of higher priority waits for its slot."""
    await house.start(hold, note, chain, concurrency=1, **AS_USED)
    await house.client.start("order.chain", {})
    await house.until("select from execution where status = 'running' and task = 'first'")
    await house.client.start("order.note", {"n": 99}, priority=9)
    GATE.set()
    await house.quiet()
    assert BEGUN == [1, 99, 2]


async def test_tasks_start_with_the_priority_of_their_workflow(house: Installation) -> None:
    await begin(house, chain)
    await house.client.start("order.note", {"n": 10}, priority=5)
    await house.client.start("order.chain", {}, priority=9)
    await house.until("select from execution where task = 'first' and status = 'scheduled'")
    GATE.set()
    await house.quiet()
    assert BEGUN[:2] == [0, 1]
    rows = await house.rows("select task, priority from execution where task is not null order by task")
    assert [tuple(row) for row in rows] == [("first", 9), ("second", 9)]


async def test_new_priority_is_used_and_explained(house: Installation) -> None:
    await begin(house)
    ids = [await house.client.start("order.note", {"n": n}, priority=1) for n in range(1, 4)]
    assert await house.client.set_priority(ids[2], 7) == 1
    assert await house.client.set_priority(ids[2], 7) == 0
    waiting = await house.client.start("order.note", {"n": 4}, priority=1)
    await house.client.start("order.note", {"n": 5}, tenant="acme", priority=1)
    answer = await why(house.session, waiting, house.settings(**AS_USED))
    assert (
        "4 executions are ahead of it on the route default: 1 of higher priority, 1 whose turn comes first, 2 older."
        in answer.says
    )
    GATE.set()
    await house.quiet()
    assert BEGUN[:2] == [0, 3]
