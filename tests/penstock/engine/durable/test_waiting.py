"""The suspension of durable functions: it awaits something, and it loses nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from penstock import DurableContext, action
from penstock.engine.durable.attempt_over import Stopped
from penstock.engine.durable.core import Core
from penstock.engine.durable.records import Awaited, Key, Record
from penstock.errors import ExecutionFailed, NothingAwaited
from penstock.testing import DurableRun, crash_everywhere
from penstock.testing.durable_memory import AttemptMemory, Memory
from penstock.testing.durable_run import BEGIN


async def work() -> str:
    return "work"


async def fail() -> None:
    raise OSError("no answer")


@crash_everywhere
async def test_task_left_at_signal_ends_with_function(run: DurableRun) -> None:
    @action(pack="t")
    async def leaves(ctx: DurableContext) -> str:
        task = asyncio.create_task(ctx.signal("go"))
        await ctx.step("work", work)
        ctx.uuid()
        return f"done: {task.done()}"

    assert await run(leaves) == "done: False"


@crash_everywhere
async def test_task_left_at_signal_ends_with_failure(run: DurableRun) -> None:
    @action(pack="t")
    async def fails(ctx: DurableContext) -> None:
        ctx.set("k", 1)
        task = asyncio.create_task(ctx.signal("go"))
        await asyncio.gather(task, ctx.step("fail", fail))

    with pytest.raises(ExecutionFailed, match="no answer"):
        await run(fails)


@crash_everywhere
async def test_value_is_recorded_when_run_is_suspended(run: DurableRun) -> None:
    @action(pack="t")
    async def stamps(ctx: DurableContext) -> str:
        async def stamp() -> str:
            await ctx.step("work", work)
            return ctx.now().date().isoformat()

        date, _ = await asyncio.gather(stamp(), ctx.sleep("1d"))
        return str(date)

    assert await run(stamps) == BEGIN.date().isoformat()


@crash_everywhere
async def test_state_survives_crash_before_first_commit(run: DurableRun) -> None:
    @action(pack="t")
    async def shows(ctx: DurableContext) -> None:
        async def show() -> None:
            ctx.set("k", 1)

        async def nap() -> None:
            await ctx.sleep("1d")

        async def limited() -> None:
            async with ctx.timeout("1d"):
                pass

        await asyncio.gather(show(), nap(), limited())

    await run(shows)
    assert run.state("k") == 1


async def test_suspension_without_anything_awaited_fails() -> None:
    memory = Memory(BEGIN, lambda records, write: write())
    core = Core(memory.begin(), memory.load(), limit=1000, warm=0.0)
    core.waiting.suspend(Awaited())
    verdict = core.waiting.verdict
    assert isinstance(verdict, Stopped)
    assert isinstance(verdict.error, NothingAwaited)
    assert "is to be suspended, and nothing would end its wait" in str(verdict.error)


class SlowAttempt(AttemptMemory):
    """An attempt whose writes take some turns of the loop."""

    async def record(self, records: Sequence[Record]) -> Mapping[Key, Record]:
        for _ in range(10):
            await asyncio.sleep(0)
        return await super().record(records)


class SlowMemory(Memory):
    def begin(self) -> AttemptMemory:
        self._attempt += 1
        return SlowAttempt(self, self._attempt)


class SlowRun(DurableRun):
    def __post_init__(self) -> None:
        self._memory = SlowMemory(BEGIN, self._commit)


async def test_step_begins_after_value_of_sibling_is_written() -> None:
    run, known = SlowRun(), list[bool]()

    async def send(_: str) -> None:
        known.append("uuid" in run.recorded)

    @action(pack="t")
    async def sends(ctx: DurableContext) -> None:
        key = str(ctx.uuid())
        await asyncio.gather(ctx.step("a", send, key), ctx.step("b", send, key))

    await run(sends)
    assert known == [True, True]


@crash_everywhere
async def test_task_made_while_cancelled_is_cancelled(run: DurableRun) -> None:
    @action(pack="t")
    async def leaves(ctx: DurableContext) -> str:
        made = []

        async def left() -> None:
            try:
                await ctx.signal("go")
            finally:
                made.append(asyncio.create_task(ctx.signal("never")))

        task = asyncio.create_task(left())
        await ctx.step("work", work)
        return f"done: {task.done()}"

    assert await run(leaves) == "done: False"
