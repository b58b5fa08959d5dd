"""An action that exits in a task of its own ends its attempt: on the loop of a worker, in a thread, in a child process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvloop

from penstock.run.event_loop import run_to_end
from penstock.run.task_executors import Outcome, TaskExecutor, attempt
from penstock_worker.executors.python.async_ import AsyncExecutor
from penstock_worker.executors.python.thread import ThreadExecutor
from tests.penstock_worker.executors.runs import run_of

Action = Callable[[], Awaitable[Any]]


async def _exit() -> None:
    await asyncio.sleep(0)
    sys.exit(3)


async def _interrupt() -> None:
    await asyncio.sleep(0)
    raise KeyboardInterrupt


async def gathers() -> None:
    await asyncio.gather(_exit(), asyncio.sleep(0.01))


async def awaits_late() -> None:
    task = asyncio.create_task(_exit())
    await asyncio.sleep(0.01)
    await task


async def interrupts() -> None:
    await asyncio.gather(_interrupt(), _interrupt())


async def exits_in_thread() -> None:
    await asyncio.gather(asyncio.to_thread(sys.exit, 3))


async def exits_in_group() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(_exit())


async def exits_in_callback() -> str:
    asyncio.get_running_loop().call_soon(sys.exit, 3)
    await asyncio.sleep(0.01)
    return "went on"


async def works() -> str:
    return "works"


def _outcomes(executor: TaskExecutor, *actions: Action) -> list[Outcome]:
    async def main() -> list[Outcome]:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        return [await attempt(executor, run_of(action)[0]) for action in actions]

    return run_to_end(main(), uvloop.new_event_loop)


@pytest.mark.parametrize("executor", [AsyncExecutor, ThreadExecutor])
@pytest.mark.parametrize("action", [gathers, awaits_late, exits_in_thread, exits_in_group, interrupts])
def test_exit_in_a_task_of_an_action_ends_its_attempt(
    action: Action, executor: type[AsyncExecutor | ThreadExecutor]
) -> None:
    failed, after = _outcomes(executor(), action, works)
    assert failed.error is not None
    assert failed.error.type == ("KeyboardInterrupt" if action is interrupts else "SystemExit")
    assert after.result == "works"


@pytest.mark.parametrize("executor", [AsyncExecutor, ThreadExecutor])
def test_exit_in_a_callback_ends_nothing(executor: type[AsyncExecutor | ThreadExecutor]) -> None:
    """The exception goes to the loop's handler, as any other of a callback does: no task waits for it."""
    assert [outcome.result for outcome in _outcomes(executor(), exits_in_callback, works)] == [
        "went on",
        "works",
    ]


def test_exit_of_the_main_coroutine_ends_the_loop() -> None:
    with pytest.raises(SystemExit):
        run_to_end(_exit())
