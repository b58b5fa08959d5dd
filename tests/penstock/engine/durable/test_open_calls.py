"""The calls that a function awaits: the failures that an attempt is tried again for, and what runs while it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import pytest

from penstock import DurableContext
from penstock.engine.durable.records import CANCELLED, COMPLETED, FAILED, STARTED, Key
from penstock.errors import StepFailed
from tests.penstock.engine.durable.attempts import Outside, memory_of_run, outcome_of, turns

CUSTOMER: ContextVar[str] = ContextVar("customer", default="")


async def _fail() -> None:
    raise OSError("away")


async def _fail_when_cancelled() -> None:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        raise OSError("interrupted") from None


async def _fails_alone(ctx: DurableContext) -> None:
    await ctx.step("fails", _fail)


async def _fails_after_cancelled_step(ctx: DurableContext) -> None:
    task = asyncio.create_task(ctx.step("dropped", _fail_when_cancelled))
    await ctx.step("begins", turns)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await ctx.step("fails", _fail)


async def _fails_before_cancelled_step(ctx: DurableContext) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(ctx.step("dropped", _fail_when_cancelled))
        await ctx.step("begins", turns)
        group.create_task(ctx.step("fails", _fail))


async def _fails_by_itself(ctx: DurableContext) -> None:
    task = asyncio.create_task(ctx.step("dropped", _fail_when_cancelled))
    await ctx.step("begins", turns)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    with suppress(StepFailed):
        await ctx.step("fails", _fail)
    raise LookupError("no such order")


CAUSES: dict[str, tuple[Callable[[DurableContext], Awaitable[None]], tuple[str, ...]]] = {
    "a step that fails": (_fails_alone, ("fails",)),
    "a step that fails after a cancelled one": (_fails_after_cancelled_step, ("fails",)),
    "a step that fails before a cancelled one": (_fails_before_cancelled_step, ("fails", "dropped")),
    "an error of the function": (_fails_by_itself, ()),
}


@pytest.mark.parametrize("name", CAUSES)
async def test_failure_names_its_causes_for_the_next_attempt(name: str) -> None:
    function, causes = CAUSES[name]
    outcome = await outcome_of(Outside(memory_of_run()), function, retried=True)
    assert outcome.error is not None
    assert outcome.kind == "failed"
    assert outcome.error.steps == tuple((cause, 1) for cause in causes)


async def test_running_steps_finish_before_failure_is_retried() -> None:
    async def slow() -> str:
        await turns()
        return "slow"

    async def function(ctx: DurableContext) -> None:
        again = {"max_attempts": 2, "initial_delay": 60, "jitter": 0}
        await asyncio.gather(
            ctx.sleep("1d"),
            ctx.step("waits for its next try", _fail, retry=again),
            ctx.step("slow", slow),
            ctx.step("fails", _fail),
        )

    memory = memory_of_run()
    outcome = await outcome_of(Outside(memory), function, retried=True)
    assert outcome.error is not None
    assert outcome.error.told == 1
    ends = {key.name: (record.status, record.told, record.tries) for key, record in memory.records.items()}
    assert ends == {
        "sleep": (STARTED, None, 0),
        "waits for its next try": (STARTED, None, 1),
        "slow": (COMPLETED, None, 1),
        "fails": (FAILED, 1, 1),
    }


async def test_error_of_a_write_stops_the_attempt() -> None:
    class Broken(Outside):
        async def begin(self, record: Any) -> None:
            raise ConnectionError("no database")

    outcome = await outcome_of(Broken(memory_of_run()), _fails_alone)
    assert outcome.error is not None
    assert (outcome.error.type, outcome.error.message) == ("ConnectionError", "no database")
    assert outcome.error.retryable is None


async def test_step_runs_in_the_context_of_its_call() -> None:
    async def function(ctx: DurableContext) -> list[str]:
        async def of_customer(name: str) -> Any:
            CUSTOMER.set(name)
            return await ctx.step("read", read)

        return list(await asyncio.gather(of_customer("a"), of_customer("b")))

    async def read() -> str:
        return CUSTOMER.get()

    assert (await outcome_of(Outside(memory_of_run()), function)).result == ["a", "b"]


async def test_step_that_is_cancelled_twice_ends_once() -> None:
    ended: list[str] = []

    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await turns()
            ended.append("stubborn")

    async def function(ctx: DurableContext) -> Any:
        async def waits() -> None:
            await ctx.step("stubborn", stubborn)

        task = asyncio.create_task(waits())
        await ctx.step("begins", turns)
        task.cancel()
        await ctx.step("between", asyncio.sleep, 0)
        task.cancel()
        [end] = await asyncio.gather(task, return_exceptions=True)
        return type(end).__name__, list(ended)

    memory = memory_of_run()
    for _ in range(2):
        assert (await outcome_of(Outside(memory), function)).result == ["CancelledError", ["stubborn"]]
        assert memory.records[Key("1/stubborn", 1)].status == CANCELLED
