from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from penstock.run.deadlines import TICK, deadlines


async def test_a_deadline_cancels_its_task_and_no_other() -> None:
    async def slow(seconds: float) -> bool:
        deadline = deadlines().watch(seconds)
        try:
            await asyncio.sleep(0.3)
        except asyncio.CancelledError:
            assert deadline.expired
            return False
        finally:
            deadlines().lift(deadline)
        return True

    assert list(await asyncio.gather(slow(0.01), slow(30), slow(0.02))) == [False, True, False]


async def test_a_deadline_that_was_lifted_does_nothing() -> None:
    deadline = deadlines().watch(0.0)
    deadlines().lift(deadline)
    await asyncio.sleep(0.15)
    assert not deadline.expired


async def test_deadlines_far_off_wake_the_loop_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, limits = asyncio.get_running_loop(), deadlines()
    timers: list[float] = []
    plain = loop.call_later

    def counting(
        delay: float, callback: Callable[..., object], *args: Any, **options: Any
    ) -> asyncio.TimerHandle:
        if getattr(callback, "__self__", None) is limits:
            timers.append(delay)
        return plain(delay, callback, *args, **options)

    monkeypatch.setattr(loop, "call_later", counting)
    for _ in range(3):
        deadline = limits.watch(30)
        await asyncio.sleep(2 * TICK)
        limits.lift(deadline)
    assert len(timers) == 1


async def test_an_earlier_deadline_expires_before_a_later_one() -> None:
    async def held(seconds: float) -> str:
        deadline = deadlines().watch(seconds)
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            return f"{seconds} expired: {deadline.expired}"
        finally:
            deadlines().lift(deadline)
        return "returned"

    late = asyncio.create_task(held(20))
    await asyncio.sleep(0)
    assert await held(0.02) == "0.02 expired: True"
    assert await held(0.01) == "0.01 expired: True"
    assert not late.done()
    late.cancel()
    assert await late == "20 expired: False"


def test_a_loop_that_is_gone_takes_its_deadlines_along() -> None:
    loops: list[weakref.ref[asyncio.AbstractEventLoop]] = []

    async def main() -> None:
        loops.append(weakref.ref(asyncio.get_running_loop()))
        deadlines().lift(deadlines().watch(30))

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    thread.join()
    gc.collect()
    assert loops[0]() is None


async def test_only_tasks_have_deadlines() -> None:
    failed: list[BaseException] = []

    def outside() -> None:
        try:
            deadlines().watch(1)
        except AssertionError as error:
            failed.append(error)

    asyncio.get_running_loop().call_soon(outside)
    await asyncio.sleep(0.01)
    assert failed
    with pytest.raises(AssertionError):
        raise failed[0]
