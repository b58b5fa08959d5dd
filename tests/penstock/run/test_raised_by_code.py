"""The ends of coroutines from outside, told apart from what their code raises."""

from __future__ import annotations

import asyncio

import pytest

from penstock.run.raised_by_code import ends_from_outside, task_reference


async def test_unrequested_cancellation_is_raised_by_code() -> None:
    task = asyncio.current_task()
    assert not ends_from_outside(asyncio.CancelledError(), task)
    assert ends_from_outside(asyncio.CancelledError(), None)


async def test_requested_cancellation_comes_from_outside() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as cancelled:
        await asyncio.sleep(0)
    assert ends_from_outside(cancelled.value, task)
    assert not ends_from_outside(cancelled.value, task, requested=1)
    task.uncancel()


async def test_generator_exit_of_running_task_is_raised_by_code() -> None:
    assert not ends_from_outside(GeneratorExit(), task_reference()())
    assert ends_from_outside(GeneratorExit(), asyncio.create_task(asyncio.sleep(0)))


def test_generator_exit_without_event_loop_comes_from_outside() -> None:
    assert ends_from_outside(GeneratorExit(), None)
    assert not ends_from_outside(ValueError(), None)
