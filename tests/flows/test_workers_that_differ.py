"""Workers of one route of which only some have an action."""

from __future__ import annotations

import asyncio

import pytest

from penstock import action
from penstock.operate.why import why
from penstock.store.outbox.queues import WORK
from penstock_worker.claiming.permits import Permits
from tests.flows.installation import Installation

open_gate = asyncio.Event()


@action(pack="differ")
async def of_all() -> None:
    pass


@action(pack="differ", retry={"max_attempts": 1})
async def of_one(number: int) -> int:
    return number


@action(pack="differ")
async def until_opened() -> None:
    await open_gate.wait()


ALL = (of_all, of_one, until_opened)
LACKED = "select from namespace where action = 'differ.of_one' and lacked"


@pytest.fixture(autouse=True)
def _no_permits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all work go by the route: assigned work finds the worker that has its action."""
    monkeypatch.setattr(Permits, "_wanted", lambda *_: 0)


async def one_lacks_it(house: Installation) -> None:
    """Two workers, of which one was offered an action that it lacks."""
    open_gate.clear()
    await house.apply(*ALL)
    await house.executor()
    await house.worker(of_all)
    await house.worker(*ALL, concurrency=1)
    await house.until("select from process where kind = 'worker' having count(*) = 2")
    await offered_to_the_other(house)


async def offered_to_the_other(house: Installation) -> None:
    """Start it until the worker that lacks it was offered one."""
    for number in range(100):
        assert await house.client.run("differ.of_one", {"number": number}, timeout=30) == number
        if await house.rows(LACKED):
            return
    raise AssertionError("a hundred times it was never offered to the worker that lacks it")


async def test_work_that_one_worker_lacks_is_offered_only_to_the_rest(house: Installation) -> None:
    await one_lacks_it(house)
    earlier = await house.client.start("differ.until_opened")
    await house.until("select from execution where status = 'running'")
    ids = [await house.client.start("differ.of_one", {"number": number}) for number in range(3)]
    parked = await house.rows("select execution_id, queue from parked where worker is null order by ready_at")
    assert [(row["execution_id"], row["queue"]) for row in parked] == [(id, WORK + "default") for id in ids]
    assert await house.rows("select from outbox where ids && $1::uuid[]", ids) == []
    says = (await why(house.session, ids[1], house.settings())).says
    assert (
        "some workers of its route lack differ.of_one, so only the other workers get the execution." in says
    )
    open_gate.set()
    assert [await house.client.result(id, timeout=20) for id in ids] == [0, 1, 2]
    await house.client.result(earlier, timeout=20)
    await house.quiet()
    assert await house.rows("select from attempt") == []
    await house.sound()


async def test_lacking_workers_are_noted_again_when_workers_come_or_go(house: Installation) -> None:
    await one_lacks_it(house)
    coming = await house.worker(*ALL)
    await house.until("select from namespace where action = 'differ.of_one' and not lacked")
    await offered_to_the_other(house)
    await house.ended(coming)
    await house.until("select from namespace where action = 'differ.of_one' and not lacked")


async def test_work_parked_for_a_leaving_worker_waits_for_the_next_one(house: Installation) -> None:
    open_gate.clear()
    await house.apply(*ALL)
    await house.executor()
    await house.worker(of_all)
    able = await house.worker(*ALL)
    await offered_to_the_other(house)
    await house.ended(able)
    id = await house.client.start("differ.of_one", {"number": 7})
    await house.until("select from parked where execution_id = $1", id)
    await house.worker(*ALL)
    assert await house.client.result(id, timeout=30) == 7
    await house.quiet()
