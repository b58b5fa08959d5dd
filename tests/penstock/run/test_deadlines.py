from __future__ import annotations

import asyncio
import gc
import threading
import weakref

import pytest

from penstock.run.deadlines import deadlines


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
