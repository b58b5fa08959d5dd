"""Limits on blocks of a durable function: which of them pass, what is cancelled then, and limits that a person takes away."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from penstock import DurableContext, action
from penstock.engine.durable.records import COMPLETED, GIVEN, STARTED, Key, Record
from penstock.errors import ExecutionFailed, StepTimedOut
from penstock.testing import DurableRun, crash_everywhere
from tests.penstock.engine.durable.attempts import Outside, memory_of_run, outcome_of

LIMIT = Key("timeout", 1)


@crash_everywhere
async def test_limit_that_passes_is_error_of_its_block(run: DurableRun) -> None:
    seen: list[Any] = []

    @action(pack="t")
    async def limited(ctx: DurableContext) -> None:
        with pytest.raises(StepTimedOut) as late:
            async with ctx.timeout("1d"):
                await ctx.sleep("2d")
        cause = late.value.__cause__
        seen.append((late.value.message, late.value.status, type(cause), str(cause)))
        await ctx.sleep("1d")

    await run(limited)
    message = "sleep timeout ended as timeout: the block took longer than its limit"
    assert set(seen) == {(message, "timeout", asyncio.CancelledError, "its time limit has passed")}


@crash_everywhere
async def test_inner_limit_leaves_outer_block_alone(run: DurableRun) -> None:
    @action(pack="t")
    async def limited(ctx: DurableContext) -> list[str]:
        ends = []
        try:
            async with ctx.timeout("5d"):
                try:
                    async with ctx.timeout("1d"):
                        await ctx.sleep("9d")
                except StepTimedOut as error:
                    ends.append(str(error.ordinal))
                await ctx.sleep("9d")
        except StepTimedOut as error:
            ends.append(str(error.ordinal))
        return ends

    assert await run(limited) == ["2", "1"]


@crash_everywhere
async def test_outer_limit_that_passes_first_ends_both_blocks(run: DurableRun) -> None:
    @action(pack="t")
    async def limited(ctx: DurableContext) -> str:
        try:
            async with ctx.timeout("1d"):
                try:
                    async with ctx.timeout("5d"):
                        await ctx.sleep("9d")
                except StepTimedOut:
                    return "inner"
        except StepTimedOut:
            return "outer"
        return "in time"

    assert await run(limited) == "outer"


@crash_everywhere
async def test_cancelled_block_is_not_late(run: DurableRun) -> None:
    @action(pack="t")
    async def limited(ctx: DurableContext) -> str:
        async def block() -> None:
            async with ctx.timeout("5d"):
                await ctx.sleep("9d")

        task = asyncio.create_task(block())
        await ctx.sleep("1d")
        task.cancel()
        [end] = await asyncio.gather(task, return_exceptions=True)
        return type(end).__name__

    assert await run(limited) == "CancelledError"


@crash_everywhere
async def test_error_of_block_stays_its_error(run: DurableRun) -> None:
    """The block catches the cancellation by its limit, and fails."""

    @action(pack="t")
    async def limited(ctx: DurableContext) -> None:
        async with ctx.timeout("1d"):
            try:
                await ctx.sleep("2d")
            except asyncio.CancelledError:
                raise OSError("away") from None

    with pytest.raises(ExecutionFailed, match="OSError: away"):
        await run(limited)


@crash_everywhere
async def test_block_that_catches_its_cancellation_is_not_late(run: DurableRun) -> None:
    @action(pack="t")
    async def limited(ctx: DurableContext) -> str:
        async with ctx.timeout("1d"):
            try:
                await ctx.sleep("2d")
            except asyncio.CancelledError:
                await ctx.sleep("3d")
                return "went on"
        return "in time"

    assert await run(limited) == "went on"


async def test_limit_that_a_person_took_away_never_passes() -> None:
    async def function(ctx: DurableContext) -> str:
        async with ctx.timeout("1d"):
            return str(await ctx.ask("Well?"))

    memory = memory_of_run()
    memory.records[LIMIT] = Record(LIMIT, 1, GIVEN, COMPLETED, "null")
    memory.answers["ask"] = [(9 * 24 * 3600, "yes")]
    assert (await outcome_of(Outside(memory), function)).kind == "suspended"
    awaited = {
        "children": [str(child.id) for child in memory.children.values()],
        "until": None,
        "signals": [],
    }
    memory.move_on(awaited)
    outcome = await outcome_of(Outside(memory), function)
    assert outcome.result == "yes"


@crash_everywhere
async def test_limit_that_passed_may_be_entered_again(run: DurableRun) -> None:
    @action(pack="t")
    async def limited(ctx: DurableContext) -> list[str]:
        limit, ends = ctx.timeout("2d"), []
        for days in (3, 1, 3, 1):
            try:
                async with limit:
                    await ctx.sleep(f"{days}d")
                ends.append("in time")
            except StepTimedOut:
                ends.append("late")
        await ctx.sleep("9d")
        return ends

    assert await run(limited) == ["late", "in time", "late", "in time"]


async def test_limit_is_not_entered_inside_of_its_block() -> None:
    async def function(ctx: DurableContext) -> None:
        async with ctx.timeout("1d") as limit:
            async with limit:
                pass

    outcome = await outcome_of(Outside(memory_of_run()), function)
    assert outcome.error is not None
    assert outcome.error.message.startswith("the same time limit was entered twice")


class TakenAway(Outside):
    """An attempt whose limit a person takes away once it counts."""

    async def record(self, records: Sequence[Record]) -> Mapping[Key, Record]:
        stored = await super().record(records)
        if any(record.key == LIMIT and record.status == STARTED for record in records):
            self._memory.records[LIMIT].status = COMPLETED
        return stored


async def test_limit_that_was_told_ends_its_block_in_later_attempts() -> None:
    """The attempt does not know that a person has taken its limit away."""

    async def function(ctx: DurableContext) -> str:
        try:
            async with ctx.timeout(0.1):
                await ctx.step("hangs", asyncio.Event().wait)
        except StepTimedOut:
            return str(await ctx.step("late", _late))
        return "in time"

    memory = memory_of_run()
    for backend in (TakenAway(memory), Outside(memory)):
        assert (await outcome_of(backend, function)).result == "late"


async def _late() -> str:
    return "late"
