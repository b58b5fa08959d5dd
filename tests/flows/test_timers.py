"""Timers fire when they are due, whichever process set them, though the loop that fires them sleeps until it is
woken."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from penstock import AskInquiry, RetryPolicy, Timeouts, action, current, workflow
from penstock.errors import ExecutionFailed
from penstock.run.steering import Defer
from penstock_executor.loops import fire_timers
from tests.flows.installation import Installation
from tests.flows.reading import metrics
from tests.servers.process import free_port

LATER = fire_timers.AFTER_A_BATCH + 0.3
"""Seconds after which the executor has looked at what its own handlers set."""


@action(pack="late", retry=RetryPolicy(max_attempts=2, initial_delay=0.2))
async def stumble() -> int:
    if current().attempt == 1:
        await asyncio.sleep(LATER)
        raise ConnectionError("once")
    return current().attempt


@action(pack="late")
async def defer() -> int:
    if current().attempt == 1:
        await asyncio.sleep(LATER)
        raise Defer(delay=0.2)
    return current().attempt


@action(pack="late", timeouts=Timeouts(waiting=0.2))
async def ask() -> None:
    await asyncio.sleep(LATER)
    raise AskInquiry("Anybody there?")


@action(pack="late", timeouts=Timeouts(total=LATER))
async def long() -> None:
    await asyncio.sleep(60)


@action(pack="late")
async def first() -> None:
    await asyncio.sleep(LATER)


@workflow(pack="late")
def flow() -> None:
    long().after(first())


ACTIONS = (stumble, defer, ask, long, first, flow)


@pytest.fixture
async def sleeping(house: Installation, monkeypatch: pytest.MonkeyPatch) -> Installation:
    """An executor that has looked at timers, and would look again in an hour; and a worker."""
    monkeypatch.setattr(fire_timers, "RECHECK", 3600.0)
    port = free_port()
    await house.apply(*ACTIONS)
    await house.executor(port=port)
    await house.worker(*ACTIONS)
    await house.until("select from process where kind = 'executor'")
    async with asyncio.timeout(20):
        while not await has_looked(port):
            await asyncio.sleep(0.1)
    return house


async def has_looked(port: int) -> bool:
    try:
        return (await metrics(port))['penstock_loop_seconds_count{loop="fire_timers"}'] > 0
    except httpx.ConnectError:  # it beats before it answers on its port
        return False


@pytest.mark.parametrize("started", ["late.long", "late.flow"])
async def test_of_times_to_complete_that_a_submit_or_a_worker_sets_the_executor_is_told(
    sleeping: Installation, started: str
) -> None:
    """No handler of an executor has anything to do with them."""
    with pytest.raises(ExecutionFailed):
        await sleeping.client.run(started, timeout=20)


async def test_of_timers_that_others_set_the_executor_is_told(sleeping: Installation) -> None:
    # First, while no handler of its own has made the executor look.
    delayed = await sleeping.client.start("late.defer", delay=LATER)
    assert await sleeping.client.result(delayed, timeout=20) == 2
    assert await sleeping.client.run("late.stumble", timeout=20) == 2
    assert await sleeping.client.run("late.defer", timeout=20) == 2
    for unanswered in ("late.ask", "late.long"):
        with pytest.raises(ExecutionFailed):
            await sleeping.client.run(unanswered, timeout=20)
    await sleeping.quiet()
    await sleeping.sound()
