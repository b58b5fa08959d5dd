"""Work without room in its task executor is not claimed: it waits, with no attempt counted, until there is room."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

from penstock import action, current
from penstock.operate.why import why
from tests.flows.installation import Installation

ONE: dict[str, Any] = {"async": {"capacity": 1}}
"""Of a worker with many slots, of which only one can run coroutines."""

order: list[int] = []
open_gate = asyncio.Event()


@action(pack="full", retry={"max_attempts": 1})
async def one_by_one(number: int) -> int:
    order.append(number)
    await asyncio.sleep(0.05)
    return current().attempt


@action(pack="full")
async def until_opened() -> None:
    await open_gate.wait()


@action(pack="full")
def in_a_thread() -> str:
    return "done"


ACTIONS = (one_by_one, until_opened, in_a_thread)


async def wait_in_front(house: Installation, count: int) -> list[UUID]:
    """Start a worker with one place for coroutines, which is taken, and offer so many executions to it."""
    open_gate.clear()
    await house.start(*ACTIONS, executors=ONE)
    await house.client.start("full.until_opened")
    await house.until("select from execution where status = 'running'")
    ids = [await house.client.start("full.one_by_one", {"number": number}) for number in range(count)]
    await house.until("select from parked having count(*) = $1", count)
    return ids


async def test_work_for_a_full_executor_costs_no_attempts_and_keeps_its_order(house: Installation) -> None:
    order.clear()
    ids = await wait_in_front(house, 6)
    assert await house.rows("select from execution where id = any($1::uuid[]) and attempt > 0", ids) == []
    open_gate.set()
    assert [await house.client.result(id, timeout=20) for id in ids] == [1] * 6
    assert order == list(range(6))
    await house.quiet()
    assert await house.rows("select from parked") == []
    assert await house.rows("select from attempt") == []
    await house.sound()


async def test_many_at_once_of_an_executor_that_takes_one_cost_one_attempt_each(house: Installation) -> None:
    await house.start(*ACTIONS, executors=ONE)
    ids = await asyncio.gather(
        *(house.client.start("full.one_by_one", {"number": number}) for number in range(30))
    )
    assert [await house.client.result(id, timeout=20) for id in ids] == [1] * 30
    await house.quiet()
    assert await house.rows("select from attempt") == []


async def test_a_full_executor_keeps_nothing_else_from_its_worker(house: Installation) -> None:
    await wait_in_front(house, 3)
    assert await house.client.run("full.in_a_thread", timeout=20) == "done"
    open_gate.set()
    await house.quiet()


async def test_a_worker_with_room_takes_work_that_a_full_one_left(house: Installation) -> None:
    ids = await wait_in_front(house, 3)
    await house.worker(*ACTIONS)
    assert [await house.client.result(id, timeout=20) for id in ids] == [1] * 3
    assert await house.rows("select from execution where status = 'running'")
    open_gate.set()
    await house.quiet()


async def test_why_names_the_executor_that_is_full_and_its_worker(house: Installation) -> None:
    [id] = await wait_in_front(house, 1)
    answer = await why(house.session, id, house.settings())
    assert answer.because == "route"
    [worker] = await house.rows("select name from process where kind = 'worker'")
    assert f"the task executor async of the worker {worker['name']} had no room" in answer.says
    open_gate.set()
    await house.quiet()


async def test_work_cancelled_while_it_waits_for_room_is_forgotten(house: Installation) -> None:
    [id] = await wait_in_front(house, 1)
    await house.client.cancel(id, reason="not needed")
    await house.until("select from execution where id = $1 and status = 'cancelled'", id)
    assert await house.rows("select from parked") == []
    open_gate.set()
    await house.quiet()
