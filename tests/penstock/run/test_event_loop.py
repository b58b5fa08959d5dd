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


async def waits_in_vain() -> None:
    """Its task exits, and nothing awaits that task."""
    asyncio.create_task(_exit())  # noqa: RUF006
    await asyncio.Event().wait()


async def waits_for_other() -> None:
    told, task = asyncio.Event(), asyncio.create_task(_exit())
    await told.wait()
    await task


async def interrupted_in_vain() -> None:
    asyncio.create_task(_interrupt())  # noqa: RUF006
    await asyncio.Event().wait()


async def exits_two_deep() -> None:
    async def makes() -> None:
        asyncio.create_task(_exit())  # noqa: RUF006

    asyncio.create_task(makes())  # noqa: RUF006
    await asyncio.Event().wait()


async def leaves_exit() -> str:
    """Its task exits when the attempt has ended."""
    LEFT.append(asyncio.create_task(_exit_late()))
    return "ended"


async def _exit_late() -> None:
    await asyncio.sleep(0.01)
    sys.exit(3)


LEFT: list[asyncio.Task[None]] = []


async def fails_unseen() -> None:
    """One of its tasks fails, another exits."""
    task = asyncio.create_task(_fail())
    await asyncio.wait([task])
    await waits_in_vain()


async def _fail() -> None:
    raise ValueError("unseen")


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
@pytest.mark.parametrize(
    "action", [waits_in_vain, waits_for_other, interrupted_in_vain, exits_two_deep, fails_unseen]
)
def test_exit_in_task_that_nothing_awaits_ends_attempt(
    action: Action, executor: type[AsyncExecutor | ThreadExecutor]
) -> None:
    failed, after = _outcomes(executor(), action, works)
    assert failed.error is not None
    raised = "KeyboardInterrupt()" if action is interrupted_in_vain else "SystemExit(3)"
    assert failed.error.type == raised.partition("(")[0]
    assert (
        failed.error.message
        == f"a task of the function raised {raised}: let the task raise an exception or return"
    )
    assert after.result == "works"


def test_exit_ends_only_attempt_whose_task_it_was() -> None:
    async def main() -> list[Outcome]:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        executor = AsyncExecutor()
        actions = [waits_in_vain, ends_late, waits_in_vain]
        return list(await asyncio.gather(*(attempt(executor, run_of(action)[0]) for action in actions)))

    async def ends_late() -> str:
        await asyncio.sleep(0.05)
        return "ended"

    outcomes = run_to_end(main(), uvloop.new_event_loop)
    assert [outcome.kind for outcome in outcomes] == ["failed", "completed", "failed"]


def test_exit_after_attempt_ends_nothing() -> None:
    async def main() -> list[Any]:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        outcome = await attempt(AsyncExecutor(), run_of(leaves_exit)[0])
        await asyncio.wait([LEFT.pop()])
        await asyncio.sleep(0.01)
        task = asyncio.current_task()
        return [outcome.result, task is not None and task.cancelling()]

    assert run_to_end(main(), uvloop.new_event_loop) == ["ended", 0]


@pytest.mark.parametrize("action", [waits_in_vain, waits_for_other, gathers])
def test_task_of_worker_is_not_cancelled_when_attempt_has_exited(action: Action) -> None:
    async def main() -> list[Any]:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        outcome = await attempt(AsyncExecutor(), run_of(action)[0])
        await asyncio.sleep(0.01)
        task = asyncio.current_task()
        return [outcome.kind, task is not None and task.cancelling()]

    assert run_to_end(main(), uvloop.new_event_loop) == ["failed", 0]


def test_cancellation_from_outside_wins_over_exit() -> None:
    """The function takes its time to end when its task has exited, and is cancelled meanwhile."""

    async def lingers() -> None:
        try:
            await waits_in_vain()
        finally:
            await asyncio.sleep(60)

    async def main() -> bool:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        run = run_of(lingers)[0]
        task = asyncio.create_task(attempt(AsyncExecutor(), run))
        while run.exited is None:
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled() and run.cancelled

    assert run_to_end(main(), uvloop.new_event_loop)


def test_timeout_wins_over_exit() -> None:
    async def lingers() -> None:
        try:
            await waits_in_vain()
        finally:
            await asyncio.sleep(60)

    async def main() -> Outcome:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        return await attempt(AsyncExecutor(), run_of(lingers, timeout=0.1)[0])

    assert run_to_end(main(), uvloop.new_event_loop).kind == "timed_out"


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
