from __future__ import annotations

import asyncio
from contextvars import copy_context
from typing import Any

import pytest

from penstock.run.context import current
from penstock.run.steering import Retry
from penstock.run.task_executors import attempt
from penstock.testing.scenarios import ScenarioAction
from penstock_worker.executors.python.async_ import AsyncExecutor
from tests.penstock_worker.executors.runs import run_of

executor = AsyncExecutor(capacity=3)


async def test_the_coroutine_runs_in_the_task_that_awaits_it() -> None:
    tasks = []

    async def action() -> None:
        tasks.append(asyncio.current_task())

    await attempt(executor, run_of(action)[0])
    assert tasks == [asyncio.current_task()]


async def test_an_unrequested_cancellation_is_a_failure() -> None:
    async def action() -> None:
        raise asyncio.CancelledError("out of a library")

    outcome = await attempt(executor, run_of(action)[0])
    assert outcome.kind == "failed"
    assert outcome.error is not None
    assert "CancelledError" in outcome.error.type


def test_closed_attempt_has_no_outcome() -> None:
    """Python closes the coroutines of an event loop that is gone."""

    async def action() -> None:
        await asyncio.sleep(60)

    failed = executor.metrics().failed
    loop = asyncio.new_event_loop()
    closed = executor.execute(run_of(action)[0])
    context = copy_context()
    task = loop.create_task(closed, context=context)
    loop.run_until_complete(asyncio.sleep(0))
    context.run(closed.close)
    assert (executor.metrics().active, executor.metrics().failed) == (0, failed)
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    loop.close()


async def test_work_that_ends_although_it_was_cancelled_has_won_the_race() -> None:
    async def action() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "done anyway"
        return "slept"

    run, _ = run_of(action, timeout=0.01)
    assert (await attempt(executor, run)).result == "done anyway"
    await asyncio.sleep(0)  # would raise if the timeout's cancellation were still pending


async def test_a_cancellation_from_outside_is_not_taken_for_the_timeout() -> None:
    async def action() -> None:
        await asyncio.sleep(60)

    task = asyncio.create_task(attempt(executor, run_of(action, timeout=30)[0]))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_exiting_the_interpreter_fails_the_attempt_only() -> None:
    async def action() -> None:
        raise SystemExit(3)

    outcome = await attempt(executor, run_of(action)[0])
    assert outcome.error is not None
    assert outcome.error.type == "SystemExit"


async def test_parameters_that_do_not_fit_are_not_retried() -> None:
    class Strict(ScenarioAction):
        __slots__ = ()

        def bind(self, params: Any, /) -> dict[str, Any]:
            raise ValueError("x is missing")

    async def action() -> None:
        """Never called."""

    run, _ = run_of(action)
    run.action = Strict("test.action", action, is_coroutine=True)
    outcome = await attempt(executor, run)
    assert outcome.error is not None
    assert outcome.error.retryable is False


async def test_the_run_is_known_in_tasks_and_threads_that_the_action_starts() -> None:
    async def action() -> list[str]:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(_namespace())
        return [task.result(), await asyncio.to_thread(lambda: current().namespace)]

    async def _namespace() -> str:
        return current().namespace

    outcome = await attempt(executor, run_of(action)[0])
    assert outcome.result == ["public::test::action"] * 2


async def test_a_steering_value_may_be_returned_as_well_as_raised() -> None:
    async def action() -> Retry:
        return Retry(after=5)

    error = (await attempt(executor, run_of(action)[0])).error
    assert error is not None
    assert (error.type, error.retryable, error.retry_after) == ("Retry", True, 5.0)


async def test_a_plain_function_runs_here_when_its_action_says_so() -> None:
    assert (await attempt(executor, run_of(lambda: 7)[0])).result == 7


async def test_a_traceback_begins_in_the_action() -> None:
    async def action() -> None:
        raise KeyError("lost")

    error = (await attempt(executor, run_of(action)[0])).error
    assert error is not None
    assert error.traceback.splitlines()[1].strip().startswith(f'File "{__file__}"')
    assert error.kinds == ("KeyError", "LookupError", "Exception", "BaseException")
