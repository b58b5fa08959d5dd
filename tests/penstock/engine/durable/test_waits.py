"""Waiting for signals: what a call gets, when its deadline passes, and deadlines that an operator removes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from penstock import DurableContext
from penstock.engine.durable.journal import signal_key
from penstock.engine.durable.records import COMPLETED, FAILED, GIVEN, SIGNAL, SLEEP, Key, Record
from penstock.errors import StepTimedOut
from penstock.testing.durable_run import BEGIN
from tests.penstock.engine.durable.attempts import Outside, memory_of_run, outcome_of, turns

DEADLINE, SENT = Key("timeout of go", 1), signal_key("go", 1)
AWAITS_SIGNAL = {"children": [], "until": None, "signals": [["signal/go", 1]], "causes": ["the signal go"]}


async def _note(name: str) -> str:
    return name


async def _hears(ctx: DurableContext) -> Any:
    return await ctx.signal("go", timeout=0)


def _sent(value: str) -> Record:
    return Record(SENT, 0, SIGNAL, COMPLETED, value, at=BEGIN)


class Removing(Outside):
    """An attempt whose deadline an operator removes right before the attempt records that it has passed."""

    async def record(self, records: Sequence[Record]) -> Mapping[Key, Record]:
        if any(record.status == FAILED for record in records):
            await turns()  # what the other branches do is known meanwhile
            self._memory.records[DEADLINE] = Record(DEADLINE, 1, SLEEP, COMPLETED, "null")
        return await super().record(records)


async def test_deadline_that_is_removed_while_it_passes_never_passes() -> None:
    memory = memory_of_run()
    for backend in (Removing(memory), Outside(memory)):
        outcome = await outcome_of(backend, _hears)
        assert (outcome.kind, outcome.awaited) == ("suspended", AWAITS_SIGNAL)
    memory.records[SENT] = _sent('"heard"')
    for _ in range(2):
        assert (await outcome_of(Outside(memory), _hears)).result == "heard"
    assert memory.records[DEADLINE].told is None


async def test_removed_deadline_holds_up_no_other_branch() -> None:
    async def function(ctx: DurableContext) -> Any:
        async def beside() -> None:
            await ctx.step("beside", turns_once)
            await ctx.step("after", turns_once)

        await asyncio.gather(ctx.signal("go", timeout=0), beside())

    async def turns_once() -> None:
        await asyncio.sleep(0)

    memory = memory_of_run()
    assert (await outcome_of(Removing(memory), function)).awaited == AWAITS_SIGNAL
    assert memory.records[Key("2/after", 1)].status == COMPLETED


async def test_deadline_that_is_removed_before_it_begins_never_passes() -> None:
    memory = memory_of_run()
    memory.records[DEADLINE] = Record(DEADLINE, 0, GIVEN, COMPLETED, "null")
    outcome = await outcome_of(Outside(memory), _hears)
    assert (outcome.kind, outcome.awaited) == ("suspended", AWAITS_SIGNAL)


async def test_deadline_that_was_told_stays_told_when_it_is_removed() -> None:
    async def function(ctx: DurableContext) -> str:
        with suppress(StepTimedOut):
            await ctx.signal("go", timeout=0)
            return "heard"
        return str(await ctx.step("late", _note, "late"))

    memory = memory_of_run()
    assert (await outcome_of(Outside(memory), function)).result == "late"
    memory.records[SENT] = _sent('"heard"')
    assert (await outcome_of(Outside(memory), function)).result == "late"


async def test_sleeps_that_are_over_are_told_by_instant() -> None:
    memory, told = memory_of_run(), list[int]()

    async def function(ctx: DurableContext) -> None:
        async def naps(days: int) -> None:
            await ctx.sleep(f"{days}d")
            told.append(days)

        await asyncio.gather(naps(3), naps(1), naps(2))

    assert (await outcome_of(Outside(memory), function)).kind == "suspended"
    memory.now += timedelta(days=9)
    assert (await outcome_of(Outside(memory), function)).kind == "completed"
    assert told == [1, 2, 3]


async def test_error_of_deadline_names_it() -> None:
    seen: list[Any] = []

    async def function(ctx: DurableContext) -> None:
        with pytest.raises(StepTimedOut) as late:
            await ctx.signal("go", timeout=0)
        seen.append((late.value.message, late.value.status))

    memory = memory_of_run()
    for _ in range(2):
        assert (await outcome_of(Outside(memory), function)).kind == "completed"
    assert seen == [("sleep timeout of go ended as timeout: nothing was told in time", "timeout")] * 2
