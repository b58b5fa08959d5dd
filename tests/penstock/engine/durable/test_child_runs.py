"""Steps that are executions of their own: what their ends give, and which of them are cancelled, and when."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from penstock import DurableContext, NonRetryable
from penstock.engine.durable.records import CANCELLED, COMPLETED, GIVEN, RUN, Child, ChildStart, Key, Record
from penstock.errors import ResultNotStorable, StepFailed, StepTimedOut
from penstock.testing.durable_memory import Memory
from penstock.testing.durable_run import BEGIN
from tests.penstock.engine.durable.attempts import (
    LIMIT,
    Outside,
    attempt_of,
    memory_of_run,
    outcome_of,
    turns,
)

Call = Callable[[DurableContext], Awaitable[Any]]
AWAY = '{"type": "OSError", "message": "away"}'
CHILD = Key("child", 1)


class OpenMemory(Memory):
    """The memory of a run whose children go on until a test ends them."""

    async def run_children(self) -> None:
        """Do nothing."""

    def end(self, status: str, result: str | None = None, error: str | None = None) -> None:
        """End all open children that are called `child`."""
        for key, child in self.children.items():
            if key.name == CHILD.name and not child.ended:
                child.status, child.result, child.error = status, result, error
                child.ended, child.at = True, self.now


class Ending(Outside):
    """An attempt that stays, and whose children end when it looks for their ends."""

    def __init__(self, memory: OpenMemory, *end: str | None) -> None:
        super().__init__(memory, stays=True)
        self.memory = memory
        self.end = end

    async def ended(self, ids: Sequence[UUID], seconds: float) -> Mapping[UUID, Child]:
        self.memory.end(*self.end)  # type: ignore[arg-type]
        return await super().ended(ids, seconds)


def _open_memory() -> OpenMemory:
    return OpenMemory(BEGIN, lambda records, write: write())


async def _note() -> str:
    return "note"


def _run(ctx: DurableContext) -> Awaitable[Any]:
    return ctx.run("t.child")


def _ask(ctx: DurableContext) -> Awaitable[Any]:
    return ctx.ask("Well?", name="child")


def _wait(ctx: DurableContext) -> Awaitable[Any]:
    return ctx.wait_for("shop.paid", name="child")


@dataclass
class End:
    """The end of a child, and the exception that its call raises."""

    call: Call
    status: str
    error: str | None
    raises: type[StepFailed]
    message: str


FAILURES: dict[str, End] = {
    "failed run": End(_run, "failed", AWAY, StepFailed, "run child failed: OSError: away"),
    "late run": End(_run, "timeout", AWAY, StepFailed, "run child ended as timeout: OSError: away"),
    "cancelled run": End(_run, "cancelled", None, StepFailed, "run child cancelled"),
    "late question": End(_ask, "timeout", None, StepTimedOut, "ask child ended as timeout"),
    "failed question": End(_ask, "failed", AWAY, StepFailed, "ask child failed: OSError: away"),
    "cancelled question": End(_ask, "cancelled", None, StepFailed, "ask child cancelled"),
    "late wait": End(_wait, "timeout", None, StepTimedOut, "wait_for child ended as timeout"),
    "failed wait": End(_wait, "failed", AWAY, StepFailed, "wait_for child failed: OSError: away"),
}


@pytest.mark.parametrize("name", FAILURES)
async def test_end_of_child_is_error_of_its_step(name: str) -> None:
    end, memory, seen = FAILURES[name], _open_memory(), list[Any]()

    async def function(ctx: DurableContext) -> None:
        with pytest.raises(StepFailed) as failed:
            await asyncio.gather(end.call(ctx), ctx.run("t.child", name="beside"))
        seen.append((type(failed.value), failed.value.message, failed.value.status))

    for backend in (Ending(memory, end.status, None, end.error), Outside(memory)):
        assert (await outcome_of(backend, function)).kind == "completed"
        assert memory.children[CHILD].id not in backend.cancels
    assert seen == [(end.raises, end.message, end.status)] * 2
    assert memory.records[CHILD].told is not None, "the order of failures is recorded before they are told"


async def test_result_of_child_is_result_of_its_step() -> None:
    memory = _open_memory()

    async def function(ctx: DurableContext) -> Any:
        return [await ctx.run("t.child"), await ctx.run("t.child")]

    backend = Ending(memory, "completed", '{"n": 7}')
    assert (await outcome_of(backend, function)).result == [{"n": 7}] * 2
    assert backend.cancels == []
    for child in memory.children.values():
        child.result = None
    assert (await outcome_of(Outside(memory), function)).result == [None, None]


async def test_ended_children_are_told_by_instant() -> None:
    memory, told = _open_memory(), list[str]()

    async def function(ctx: DurableContext) -> None:
        async def one(name: str) -> None:
            await ctx.run("t.child", name=name)
            told.append(name)

        await asyncio.gather(one("a"), one("b"), one("c"))

    assert (await outcome_of(Outside(memory), function)).kind == "suspended"
    for child, seconds in zip(memory.children.values(), (3, 1, 2), strict=True):
        child.status, child.ended, child.at = "completed", True, BEGIN + timedelta(seconds=seconds)
    memory.now += timedelta(days=1)
    assert (await outcome_of(Outside(memory), function)).kind == "completed"
    assert told == ["b", "c", "a"]


async def test_result_that_a_person_gave_replaces_cancelled_child() -> None:
    memory = _open_memory()

    class Given(Ending):
        async def ended(self, ids: Sequence[UUID], seconds: float) -> Mapping[UUID, Child]:
            memory.records[CHILD] = Record(
                CHILD, 1, GIVEN, COMPLETED, '"given"', told=memory.records[CHILD].told
            )
            return await super().ended(ids, seconds)

    async def function(ctx: DurableContext) -> Any:
        return await ctx.run("t.child")

    for backend in (Given(memory, "cancelled"), Outside(memory)):
        assert (await outcome_of(backend, function)).result == "given"


async def test_child_of_abandoned_branch_is_cancelled_when_function_goes_on() -> None:
    memory, cancels = _open_memory(), list[list[UUID]]()
    backend = Outside(memory)

    async def look() -> None:
        await turns()
        cancels.append(list(backend.cancels))

    async def function(ctx: DurableContext) -> None:
        asked, kept = (asyncio.create_task(ctx.run("t.child")) for _ in range(2))
        await ctx.step("quick", turns)
        asked.cancel()
        await ctx.step("look", look)
        await kept

    assert (await outcome_of(backend, function)).kind == "suspended"
    cancelled, kept = memory.children[CHILD], memory.children[Key("child", 2)]
    assert cancels == [[cancelled.id]]
    assert backend.cancels == [cancelled.id]
    assert (cancelled.status, kept.status) == ("cancelled", "started")
    assert memory.records[CHILD].status == CANCELLED


async def test_unawaited_child_is_cancelled_at_the_end() -> None:
    memory = _open_memory()
    backend = Outside(memory)

    async def function(ctx: DurableContext) -> None:
        asyncio.create_task(ctx.run("t.child"))  # noqa: RUF006
        await ctx.step("quick", turns)

    assert (await outcome_of(backend, function)).kind == "completed"
    [child] = memory.children.values()
    assert backend.cancels == [child.id]
    assert memory.records[CHILD].status == CANCELLED


async def test_child_cancelled_while_it_starts_is_cancelled() -> None:
    memory = _open_memory()
    backend = Outside(memory)

    async def release() -> None:
        await turns()
        backend.held.set()
        await turns()

    async def function(ctx: DurableContext) -> None:
        await ctx.step("first", _note)
        task = asyncio.create_task(ctx.run("t.child"))
        beside = asyncio.create_task(ctx.step("release", release))
        await asyncio.sleep(0)
        backend.held.clear()
        await ctx.step("cancels", _note)
        task.cancel()
        await beside

    assert (await outcome_of(backend, function)).kind == "completed"
    [child] = memory.children.values()
    assert backend.cancels == [child.id]
    assert memory.records[CHILD].status == CANCELLED


async def _leaves_task(ctx: DurableContext) -> None:
    asyncio.create_task(ctx.run("t.child"))  # noqa: RUF006
    await ctx.step("last", _note)


async def _takes_other_arm(ctx: DurableContext) -> None:
    await ctx.first(child=ctx.run("t.child"), last=ctx.step("last", _note))


async def _fails_beside(ctx: DurableContext) -> None:
    await _leaves_task(ctx)
    raise NonRetryable("no such order")


@pytest.mark.parametrize("function", [_leaves_task, _takes_other_arm, _fails_beside])
async def test_child_that_starts_at_the_end_is_cancelled(function: Call) -> None:
    """The start commits once the function has ended, and before the attempt does."""
    memory = _open_memory()

    class Slow(Outside):
        async def start(self, children: Sequence[ChildStart]) -> Mapping[Key, Child]:
            await turns()
            return await super().start(children)

    backend = Slow(memory)
    assert (await outcome_of(backend, function)).kind != "suspended"
    [child] = memory.children.values()
    assert backend.cancels == [child.id]
    assert child.status == "cancelled"
    assert memory.records[CHILD].status == CANCELLED


async def _never_cleans_up(ctx: DurableContext) -> None:
    try:
        await ctx.run("t.child")
    finally:
        await ctx.signal("never sent")


async def test_open_child_is_cancelled_when_grace_is_over() -> None:
    memory = _open_memory()
    assert (await outcome_of(Outside(memory), _never_cleans_up)).kind == "suspended"
    memory.ends_as = CANCELLED
    backend = Outside(memory)
    async with asyncio.timeout(20):
        outcome = await attempt_of(backend, _never_cleans_up, grace=0.1).run({})
    assert outcome.error is not None
    assert "had not cleaned up" in outcome.error.message
    [child] = memory.children.values()
    assert backend.cancels == [child.id]


async def test_child_that_starts_when_grace_is_over_is_cancelled() -> None:
    memory = _open_memory()
    memory.ends_as = CANCELLED
    backend = Outside(memory)

    async def function(ctx: DurableContext) -> None:
        try:
            await ctx.signal("never sent")
        finally:
            await ctx.step("last", _note)
            backend.held.clear()
            await ctx.run("t.child")

    running = asyncio.create_task(attempt_of(backend, function, grace=0.1).run({}))
    await asyncio.sleep(0.2)
    assert not memory.children
    backend.held.set()
    outcome = await asyncio.wait_for(running, 20)
    assert outcome.error is not None
    assert "had not cleaned up" in outcome.error.message
    [child] = memory.children.values()
    assert backend.cancels == [child.id]


@pytest.mark.parametrize("retried", [False, True])
async def test_open_child_is_cancelled_when_code_does_not_fit(retried: bool) -> None:
    memory = _open_memory()

    async def before(ctx: DurableContext) -> None:
        await ctx.step("step", _note)
        await ctx.run("t.child")

    async def after(ctx: DurableContext) -> None:
        await ctx.step("other", _note)

    assert (await outcome_of(Outside(memory), before)).kind == "suspended"
    backend = Outside(memory)
    outcome = await outcome_of(backend, after, retried=retried)
    assert outcome.error is not None
    assert outcome.error.type == "ReplayMismatch"
    [child] = memory.children.values()
    assert backend.cancels == [child.id]


@pytest.mark.parametrize(("retried", "is_cancelled"), [(True, False), (False, True)])
async def test_open_child_is_kept_for_the_next_attempt(retried: bool, is_cancelled: bool) -> None:
    memory = _open_memory()

    class Broken(Outside):
        """An attempt whose writes fail once its child has started."""

        async def record(self, records: Sequence[Record]) -> Mapping[Key, Record]:
            if memory.children:
                raise OSError("away")
            return await super().record(records)

    async def function(ctx: DurableContext) -> None:
        task = asyncio.create_task(ctx.run("t.child"))
        await ctx.step("turns", turns)
        await task

    backend = Broken(memory)
    assert (await outcome_of(backend, function, retried=retried)).kind == "failed"
    [child] = memory.children.values()
    assert backend.cancels == ([child.id] if is_cancelled else [])


async def test_child_that_ended_is_told_before_a_later_instant() -> None:
    class Looking(Outside):
        """An attempt that stays, and learns with a look that a child has ended."""

        async def look(
            self, signals: Sequence[Key], children: Sequence[UUID]
        ) -> tuple[Sequence[Record], Mapping[UUID, Child]]:
            memory.end("completed")
            return await super().look(signals, children)

    async def function(ctx: DurableContext) -> list[bool]:
        tasks = [asyncio.create_task(ctx.run("t.child", name=name)) for name in ("child", "other")]
        await ctx.sleep(0.1)
        return [task.done() for task in tasks]

    memory = _open_memory()
    assert (await outcome_of(Looking(memory, stays=True), function)).result == [True, False]


async def test_large_parameters_are_refused_where_the_call_stands() -> None:
    async def function(ctx: DurableContext) -> Any:
        with pytest.raises(ResultNotStorable):
            _ = ctx.run("t.child", text="x" * LIMIT)
        return await ctx.run("t.child", text="x" * (LIMIT - 100))

    memory = memory_of_run()
    memory.functions["t.child"] = lambda text: len(text)
    backend = Outside(memory)
    assert (await outcome_of(backend, function)).result == LIMIT - 100
    [start] = backend.starts
    assert start.record.kind == RUN
