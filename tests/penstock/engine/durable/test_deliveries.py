"""The order in which results are told, what waits for a record, and the functions that wait for what never comes."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import pytest

from penstock import DurableContext
from penstock.engine.durable import deliveries
from penstock.engine.durable.journal import signal_key
from penstock.engine.durable.records import COMPLETED, END, FAILED, TOLD, Key, Record
from penstock.engine.durable.run_loop import RunLoop
from penstock.errors import StepTimedOut
from penstock.testing.durable_run import BEGIN
from tests.penstock.engine.durable.attempts import Outside, attempt_of, memory_of_run, outcome_of, turns


async def _note(name: str = "note") -> str:
    return name


async def test_result_waits_for_its_record_without_turns_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    run_count, run = 0, RunLoop.run

    def counted(loop: RunLoop) -> None:
        nonlocal run_count
        run_count += 1
        run(loop)

    class Holding(Outside):
        async def record(self, records: Sequence[Record]) -> Mapping[Key, Record]:
            if any(record.key.name == "a" for record in records):
                await recorded.wait()
            return await super().record(records)

    async def function(ctx: DurableContext) -> Any:
        return list(await asyncio.gather(ctx.step("a", _note), ctx.step("b", _note)))

    recorded = asyncio.Event()
    monkeypatch.setattr(RunLoop, "run", counted)
    attempt = asyncio.create_task(attempt_of(Holding(memory_of_run()), function).run({}))
    await turns()
    count_before = run_count
    await turns()
    assert run_count == count_before
    recorded.set()
    assert (await attempt).result == ["note", "note"]


class Overtaken(Outside):
    """An attempt in which a signal is sent right before two deadlines are recorded."""

    async def record(self, records: Sequence[Record]) -> Mapping[Key, Record]:
        if any(record.status == FAILED for record in records):
            self._memory.now = BEGIN.replace(year=2028)
        return await super().record(records)


async def test_call_whose_signal_went_to_an_earlier_call_waits_on() -> None:
    """The first deadline is told, and the function awaits an earlier call, while the second one finds the signal."""
    memory = memory_of_run()
    memory.signals.append((BEGIN.replace(year=2027), signal_key("go", 1), "heard"))

    async def function(ctx: DurableContext) -> Any:
        async def hasty(call: Any) -> Any:
            with suppress(StepTimedOut):
                return await call

        early = ctx.signal("go")
        stop = asyncio.create_task(hasty(ctx.signal("stop", timeout=0)))
        late = asyncio.create_task(hasty(ctx.signal("go", timeout=0)))
        return [await stop, await early, await late]

    for backend in (Overtaken(memory), Outside(memory)):
        assert (await outcome_of(backend, function)).result == [None, "heard", None]


async def test_result_that_comes_in_a_later_attempt_is_only_marked() -> None:
    """A record that is written again could bring back what a person has changed meanwhile."""
    written: list[tuple[str, str, int | None]] = []

    class Noting(Outside):
        async def record(self, records: Sequence[Record]) -> Mapping[Key, Record]:
            written.extend((record.key.name, record.status, record.told) for record in records)
            return await super().record(records)

    async def function(ctx: DurableContext) -> None:
        await asyncio.gather(ctx.sleep(60), ctx.signal("go"), ctx.run("t.child"))
        await ctx.step("after", _note)

    memory = memory_of_run()
    memory.functions["t.child"] = lambda: 7
    memory.signals.append((BEGIN.replace(year=2027), signal_key("go", 1), "heard"))
    await outcome_of(Outside(memory), function)
    memory.now = BEGIN.replace(year=2028)
    assert (await outcome_of(Noting(memory), function)).kind == "completed"
    assert written == [
        ("sleep", TOLD, 2),
        ("signal/go", TOLD, 3),
        ("after", COMPLETED, 4),
    ]


async def test_tasks_that_never_end_stop_the_end_of_the_function() -> None:
    async def function(ctx: DurableContext) -> str:
        async def left() -> None:
            try:
                await ctx.sleep("9d")
            finally:
                await asyncio.Event().wait()

        asyncio.create_task(left())  # noqa: RUF006
        return str(await ctx.step("a", _note))

    outcome = await outcome_of(Outside(memory_of_run()), function)
    assert outcome.error is not None
    assert (outcome.error.type, outcome.error.retryable) == ("DefinitionError", False)
    assert "wait for each other" in outcome.error.message


async def test_long_replay_lets_other_tasks_of_the_worker_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "BATCH", 3)
    seen: list[str] = []

    async def function(ctx: DurableContext) -> None:
        for number in range(6):
            seen.append(f"{number}")
            await ctx.step("a", _note)

    async def other() -> None:
        while True:
            seen.append(".")
            await asyncio.sleep(0)

    memory = memory_of_run()
    await outcome_of(Outside(memory), function)
    seen.clear()
    task = asyncio.create_task(other())
    await outcome_of(Outside(memory), function)
    task.cancel()
    turns_of_others = re.sub(r"\.+", ".", "".join(seen)).strip(".")
    assert turns_of_others == "012.345"


async def test_code_that_awaits_a_cancelled_call_stops_the_run() -> None:
    """The code of the first attempt cancelled the sleep, and that of the second one awaits it."""
    memory, is_changed = memory_of_run(), False

    async def function(ctx: DurableContext) -> None:
        sleep = asyncio.create_task(ctx.sleep("1d"))
        await ctx.step("a", _note)
        if is_changed:
            await sleep
        sleep.cancel()
        await ctx.step("b", _note)
        await ctx.signal("never")

    assert (await outcome_of(Outside(memory), function)).kind == "suspended"
    is_changed = True
    outcome = await outcome_of(Outside(memory), function)
    assert outcome.error is not None
    assert outcome.error.type == "ReplayMismatch"
    assert "waits for sleep sleep, and its run has cancelled it" in outcome.error.message


@pytest.mark.parametrize("cleans_up", [True, False])
async def test_deadlock_of_tasks_is_undone_once(cleans_up: bool) -> None:
    undone: list[str] = []

    async def waits(ctx: DurableContext) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            if cleans_up:
                await ctx.step("clean", _note)

    async def function(ctx: DurableContext) -> None:
        ctx.on_failure(undone.append, "first")
        await ctx.step("a", _note)
        ctx.on_failure(undone.append, "second")
        await asyncio.gather(waits(ctx), waits(ctx))

    memory = memory_of_run()
    for _ in range(2):  # the second attempt replays the first one, and has to find the deadlock at its place
        outcome = await outcome_of(Outside(memory), function, retried=True)
        assert outcome.error is not None
        assert (outcome.error.type, outcome.error.retryable) == ("DefinitionError", False)
        assert "wait for each other" in outcome.error.message
        assert undone == ["second", "first"]
    assert sum(key.name.endswith("clean") for key in memory.records) == 2 * cleans_up


async def test_deadlock_of_a_left_task_is_undone() -> None:
    """The function has ended, and a task of it waits for what never comes, however often it is cancelled."""
    undone: list[str] = []

    async def left() -> None:
        while True:
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()

    async def function(ctx: DurableContext) -> None:
        ctx.on_failure(undone.append, "a")
        asyncio.create_task(left())  # noqa: RUF006
        await ctx.step("a", _note)

    outcome = await outcome_of(Outside(memory_of_run()), function)
    assert outcome.error is not None
    assert (outcome.error.type, outcome.error.retryable, undone) == ("DefinitionError", False, ["a"])


async def test_deadlock_comes_before_a_recorded_request_to_end() -> None:
    """The end is requested while the undo of a deadlock runs. The next attempt finds the deadlock again, and not the request."""
    undone: list[str] = []

    async def function(ctx: DurableContext) -> None:
        ctx.on_failure(undone.append, "a")
        await ctx.step("a", _note)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as error:
            undone.append(str(error))
            raise

    memory = memory_of_run()
    await outcome_of(Outside(memory), function)
    memory.records[deliveries.END_KEY] = Record(
        deliveries.END_KEY, 0, END, COMPLETED, '"cancelled"', told=9, at=BEGIN
    )
    outcome = await outcome_of(Outside(memory), function)
    assert outcome.error is not None
    assert (outcome.error.type, undone) == ("DefinitionError", ["", "a", ""])
