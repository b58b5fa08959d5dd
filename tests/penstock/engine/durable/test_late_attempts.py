"""Attempts that begin long after several things happened: the function is told them by their instants."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import DurableContext
from penstock.engine.durable.records import Child, Key
from penstock.errors import StepFailed, StepTimedOut
from penstock.testing.durable_memory import Memory
from tests.penstock.engine.durable.attempts import Outside, memory_of_run, outcome_of

Function = Callable[[DurableContext], Coroutine[Any, Any, Any]]


class ChildrenElsewhere(Outside):
    """An attempt whose children are run by the test."""

    async def load(self) -> Any:
        self._memory._attempt += 1
        self._attempt = self._memory._attempt
        self._memory.arrive()
        return self._memory.load()

    async def start(self, children: Any) -> Any:
        for start in children:
            self._memory._store(start)
        return {start.record.key: self._memory.children[start.record.key] for start in children}


def _after(memory: Memory, hours: float) -> None:
    memory.now += timedelta(hours=hours)


def _signal(memory: Memory, name: str, value: Any) -> None:
    memory.signals.append((memory.now, Key(f"signal/{name}", 1), value))


def _end_child(memory: Memory, *, fails: bool = False) -> None:
    [child] = memory.children.values()
    _end(child, memory.now, fails=fails)


def _end(child: Child, at: datetime, *, fails: bool) -> None:
    child.status, child.ended, child.at = ("failed" if fails else "completed"), True, at
    child.result = None if fails else '"child"'
    child.error = '{"type": "OSError", "message": "no"}' if fails else None


async def sleep_or_signal(ctx: DurableContext) -> Any:
    return list(await ctx.first(paid=ctx.signal("paid"), late=ctx.sleep("1h")))


async def limit_or_signal(ctx: DurableContext) -> Any:
    try:
        async with ctx.timeout("1h"):
            return ["paid", await ctx.signal("paid")]
    except StepTimedOut:
        return ["late", None]


async def child_or_signal(ctx: DurableContext) -> Any:
    return list(await ctx.first(paid=ctx.signal("paid"), late=ctx.run("t.child", {})))


async def sleep_or_child(ctx: DurableContext) -> Any:
    try:
        return list(await ctx.first(paid=ctx.run("t.child", {}), late=ctx.sleep("1h")))
    except StepFailed:
        return ["paid", "failed"]


async def order_of_all(ctx: DurableContext) -> Any:
    told: list[str] = []

    async def note(name: str, call: Any) -> None:
        await call
        told.append(name)

    await asyncio.gather(
        note("signal", ctx.signal("paid")),
        note("sleep of 3", ctx.sleep("3h")),
        note("child", ctx.run("t.child", {})),
        note("sleep of 1", ctx.sleep("1h")),
    )
    return told


async def _suspend(memory: Memory, function: Function) -> None:
    outcome = await outcome_of(ChildrenElsewhere(memory), function)
    assert outcome.kind == "suspended"


async def _resume(memory: Memory, function: Function) -> Any:
    outcome = await outcome_of(ChildrenElsewhere(memory), function)
    assert outcome.kind == "completed", outcome
    return outcome.result


@pytest.mark.parametrize("hours", [0.5, 2])
@pytest.mark.parametrize("function", [sleep_or_signal, limit_or_signal])
async def test_signal_after_an_instant_comes_after_it(function: Function, hours: float) -> None:
    memory = memory_of_run()
    await _suspend(memory, function)
    _after(memory, hours)
    _signal(memory, "paid", 7)
    _after(memory, 5)
    assert await _resume(memory, function) == (["paid", 7] if hours < 1 else ["late", None])


@pytest.mark.parametrize("signal_first", [False, True])
async def test_child_and_signal_are_told_in_their_order(signal_first: bool) -> None:
    memory = memory_of_run()
    await _suspend(memory, child_or_signal)
    for name in ("signal", "child") if signal_first else ("child", "signal"):
        _after(memory, 1)
        if name == "signal":
            _signal(memory, "paid", 7)
        else:
            _end_child(memory)
    _after(memory, 5)
    assert await _resume(memory, child_or_signal) == (["paid", 7] if signal_first else ["late", "child"])


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("hours", [0.5, 2])
async def test_child_after_an_instant_comes_after_it(hours: float, fails: bool) -> None:
    memory = memory_of_run()
    await _suspend(memory, sleep_or_child)
    _after(memory, hours)
    _end_child(memory, fails=fails)
    _after(memory, 5)
    expected = ["late", None] if hours > 1 else ["paid", "failed" if fails else "child"]
    assert await _resume(memory, sleep_or_child) == expected


async def test_all_that_was_over_is_told_before_anything_new_begins() -> None:
    memory = memory_of_run()
    await _suspend(memory, order_of_all)
    _after(memory, 2)
    _end_child(memory)
    _after(memory, 2)
    _signal(memory, "paid", 7)
    _after(memory, 1)
    told = await _resume(memory, order_of_all)
    assert told == ["sleep of 1", "child", "sleep of 3", "signal"]
    assert await _resume(memory, order_of_all) == told


async def deadline_or_sleep(ctx: DurableContext) -> Any:
    try:
        return list(await ctx.first(paid=ctx.signal("paid", timeout="1h"), late=ctx.sleep("2h")))
    except StepTimedOut:
        return ["no payment", None]


@pytest.mark.parametrize(
    ("hours", "result"), [(0.5, ["paid", 7]), (1.5, ["no payment", None]), (3, ["no payment", None])]
)
async def test_deadline_is_told_at_its_instant(hours: float, result: list[Any]) -> None:
    memory = memory_of_run()
    await _suspend(memory, deadline_or_sleep)
    _after(memory, hours)
    _signal(memory, "paid", 7)
    _after(memory, 5)
    for _ in range(2):
        assert await _resume(memory, deadline_or_sleep) == result


async def test_signal_after_deadline_goes_to_next_call() -> None:
    async def function(ctx: DurableContext) -> Any:
        try:
            return ["in time", await ctx.signal("paid", timeout="1h")]
        except StepTimedOut:
            return ["reminded", await ctx.signal("paid", timeout="9h")]

    memory = memory_of_run()
    await _suspend(memory, function)
    _after(memory, 2)
    _signal(memory, "paid", 7)
    _after(memory, 5)
    for _ in range(2):
        assert await _resume(memory, function) == ["reminded", 7]


async def test_deadlines_are_told_in_order_of_instants() -> None:
    told: list[str] = []

    async def function(ctx: DurableContext) -> None:
        async def listen(name: str, hours: int) -> None:
            with suppress(StepTimedOut):
                await ctx.signal(name, timeout=3600 * hours)
            told.append(f"{name} {hours}")

        await asyncio.gather(listen("go", 4), listen("stop", 2), listen("go", 1), listen("go", 3))

    memory = memory_of_run()
    await _suspend(memory, function)
    _after(memory, 5)
    for _ in range(2):
        await _resume(memory, function)
        assert told == ["go 1", "stop 2", "go 3", "go 4"]
        told.clear()


async def test_nothing_new_begins_before_deadline_is_told() -> None:
    called: list[str] = []

    async def note() -> None:
        called.append("called")

    async def function(ctx: DurableContext) -> None:
        async def beside() -> None:
            await ctx.sleep("1h")
            await ctx.step("begun", note)

        task = asyncio.create_task(beside())
        with suppress(StepTimedOut):
            await ctx.signal("go", timeout="2h")
        task.cancel()

    memory = memory_of_run()
    await _suspend(memory, function)
    _after(memory, 5)
    await _resume(memory, function)
    assert called == []


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["sleep", "signal", "child", "failing child", "deadline"]), st.integers(1, 40)
        ),
        max_size=8,
    )
)
@settings(max_examples=60, deadline=None, database=None)
def test_random_happenings_are_told_by_their_instants(happenings: list[tuple[str, int]]) -> None:
    """The oracle is a sort: whatever happened before an attempt began has an instant of its own."""
    instants = dict(zip(dict.fromkeys(hour for _, hour in happenings), happenings, strict=False))
    plan = [(kind, hour) for hour, (kind, _) in instants.items()]

    async def function(ctx: DurableContext) -> Any:
        told: list[int] = []

        async def note(kind: str, hour: int) -> None:
            with suppress(StepFailed):
                if kind == "sleep":
                    await ctx.sleep(3600 * hour)
                elif kind == "deadline":
                    await ctx.signal("never", timeout=3600 * hour)
                elif kind == "signal":
                    await ctx.signal(f"of {hour}")
                else:
                    await ctx.run(f"t.of_{hour}", {})
            told.append(hour)

        await asyncio.gather(*(note(kind, hour) for kind, hour in plan))
        await ctx.step("after", _nothing)
        return told

    async def play() -> None:
        memory = memory_of_run()
        begin = memory.now
        if plan:
            await _suspend(memory, function)
        for kind, hour in plan:
            memory.now = begin + timedelta(hours=hour)
            if kind == "signal":
                _signal(memory, f"of {hour}", hour)
            elif kind not in ("sleep", "deadline"):
                [child] = [
                    child
                    for key, child in memory.children.items()
                    if key.name.rpartition("/")[2] == f"of_{hour}"
                ]
                _end(child, memory.now, fails=kind == "failing child")
        memory.now = begin + timedelta(hours=50)
        assert await _resume(memory, function) == sorted(hour for _, hour in plan)

    asyncio.run(play())


async def _nothing() -> None: ...
