"""Whoever waits for a result is told of it: here nobody who waits looks again by himself."""

from __future__ import annotations

import asyncio

import pytest

from penstock import action
from penstock.client import result_watch
from penstock.errors import ExecutionFailed
from penstock.language.workflows import from_yaml
from tests.flows.installation import Installation

LONG = 3600.0


@action(pack="told")
async def nap(seconds: float) -> float:
    await asyncio.sleep(seconds)
    return seconds


FLOW = from_yaml("""
workflow: told.flow
tasks:
  one: {action: told.nap, input: {seconds: 0.3}}
output: "{{ tasks.one.result }}"
""")


@pytest.fixture(autouse=True)
def nobody_looks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_watch, "FIRST", LONG)
    monkeypatch.setattr(result_watch, "MOST", LONG)


async def test_by_the_worker_that_ends_it(house: Installation) -> None:
    await house.start(nap, FLOW)
    ids = [await house.client.start("told.nap", {"seconds": n / 10}) for n in (3, 5, 7)]
    results = await asyncio.gather(*(house.client.result(id, timeout=30) for id in ids))
    assert results == [0.3, 0.5, 0.7]


async def test_by_whoever_ends_the_workflow(house: Installation) -> None:
    await house.start(nap, FLOW)
    assert await house.client.run("told.flow", timeout=30) == 0.3


async def test_by_another_client_that_cancels_it(house: Installation) -> None:
    await house.apply(nap)
    id = await house.client.start("told.nap", {"seconds": 1})
    waiting = asyncio.create_task(house.client.result(id, timeout=30))
    await house.until("select 1 from awaited where execution_id = $1", id)
    await house.client.cancel(id)
    with pytest.raises(ExecutionFailed, match="cancelled"):
        await waiting
    assert not await house.rows("select 1 from awaited")


async def test_what_nobody_awaits_costs_no_hint(house: Installation) -> None:
    await house.start(nap, FLOW)
    id = await house.client.start("told.nap", {"seconds": 0})
    await house.until("select 1 from execution where id = $1 and finished_at is not null", id)
    assert await house.client.result(id, timeout=30) == 0  # it has ended: nothing is registered
    assert not await house.rows("select 1 from awaited")
