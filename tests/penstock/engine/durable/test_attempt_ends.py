"""Attempts that end from outside, that are refused a child, or that cannot go on; and the children that calls start."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pytest

from penstock import DurableContext
from penstock.engine.durable import run_loop
from penstock.engine.durable.drive import Attempt
from penstock.engine.durable.records import (
    ASK,
    CANCELLED,
    COMPLETED,
    END,
    MAP,
    RUN,
    WAIT_FOR,
    Child,
    ChildStart,
    Key,
)
from penstock.errors import NotFound
from penstock.run.deadlines import TIME_IS_UP
from penstock.run.outcomes import Outcome
from penstock.testing.durable_memory import AttemptMemory, Memory
from penstock.testing.durable_run import BEGIN

CLEAN = Key("clean", 1)


class Outside(AttemptMemory):
    """An attempt that may be asked to end, or refused its children."""

    def __init__(self, memory: Memory, *, asked: bool = False, refused: bool = False) -> None:
        memory._attempt += 1
        super().__init__(memory, memory._attempt)
        self.asked = asked
        self.refused = refused
        self.starts: list[ChildStart] = []

    def asked_to_end(self) -> bool:
        return self.asked

    async def start(self, children: Sequence[ChildStart]) -> Mapping[Key, Child]:
        self.starts += children
        if self.refused:
            raise NotFound("there is no t.child", hint="Apply it.")
        return await super().start(children)


def _memory() -> Memory:
    return Memory(BEGIN, lambda records, write: write())


def _attempt(backend: Outside, function: Callable[..., Any], grace: float = 10.0) -> Attempt:
    return Attempt(backend, function, limit=1000, warm=5.0, grace=grace, retried=lambda outcome: False)


async def _hang() -> None:
    await asyncio.Event().wait()


async def _note() -> str:
    return "clean"


async def _cleans_up(ctx: DurableContext) -> None:
    try:
        await ctx.step("long", _hang)
    finally:
        await ctx.step("clean", _note)


async def _never_cleans_up(ctx: DurableContext) -> None:
    try:
        await ctx.step("long", _hang)
    finally:
        await ctx.step("clean", _hang)


async def _end(function: Any, *, asked: bool, message: str = "", grace: float = 10.0) -> Memory:
    """Cancel an attempt of this function while its step runs, and return what is recorded."""
    memory = _memory()
    task = asyncio.create_task(_attempt(Outside(memory, asked=asked), function, grace).run({}))
    await asyncio.sleep(0.1)
    task.cancel(message)
    async with asyncio.timeout(60):
        with pytest.raises(asyncio.CancelledError):
            await task
    return memory


async def test_run_that_is_asked_to_end_cleans_up() -> None:
    memory = await _end(_cleans_up, asked=True)
    assert memory.records[CLEAN].status == COMPLETED
    assert memory.records[Key("long", 1)].status == CANCELLED
    assert [key.name for key, record in memory.records.items() if record.kind == END] == [END]


async def test_attempt_whose_time_is_up_cleans_up() -> None:
    memory = await _end(_cleans_up, asked=False, message=TIME_IS_UP)
    assert memory.records[CLEAN].status == COMPLETED


async def test_attempt_of_a_stopping_worker_records_nothing() -> None:
    memory = await _end(_cleans_up, asked=False)
    assert memory.records == {}


async def test_clean_up_ends_with_its_grace() -> None:
    memory = await _end(_never_cleans_up, asked=True, grace=0.1)
    assert CLEAN not in memory.records


async def test_refused_child_is_refused_in_each_attempt() -> None:
    seen: list[Any] = []

    async def function(ctx: DurableContext) -> str:
        with pytest.raises(NotFound) as refused:
            await ctx.run("t.child", n=1)
        seen.append((refused.value.message, refused.value.hint))
        return "refused"

    memory = _memory()
    for refuses in (True, False):
        outcome = await _attempt(Outside(memory, refused=refuses), function).run({})
        assert (outcome.kind, outcome.result) == ("completed", "refused")
    assert seen == [("there is no t.child", "Apply it.")] * 2


async def test_attempt_that_cannot_go_on_has_failed_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_loop, "TURNS_LIMIT", 10)

    async def spins(ctx: DurableContext) -> None:
        while True:
            await asyncio.sleep(0)

    outcome: Outcome = await _attempt(Outside(_memory()), spins).run({})
    assert outcome.kind == "failed"
    assert outcome.error is not None
    assert (outcome.error.type, outcome.error.retryable) == ("DefinitionError", False)


Call = Callable[[DurableContext], Awaitable[Any]]
ITEMS = [{"n": 1}, {"n": 2}, {"n": 3}]
QUESTION = {"prompt": "Well?", "schema": None, "assignee": None, "timeout": None, "default": None}
EVENT: dict[str, Any] = {"trigger": "shop.paid", "filter": None, "names": {}, "timeout": None}
STARTS: dict[str, tuple[Call, str, str, str, dict[str, Any]]] = {
    "run": (lambda ctx: ctx.run("t.child", {"n": 1}, m=2), RUN, "child", "t.child", {"n": 1, "m": 2}),
    "run by name": (lambda ctx: ctx.run("t.child", name="other"), RUN, "other", "t.child", {}),
    "map": (
        lambda ctx: ctx.map("t.child", ITEMS, concurrency=2), MAP, "child", "t.child", {"items": ITEMS, "concurrency": 2},
    ),
    "map of all at once": (
        lambda ctx: ctx.map("t.child", ITEMS), MAP, "child", "t.child", {"items": ITEMS, "concurrency": 3},
    ),
    "map of nothing, by name": (
        lambda ctx: ctx.map("t.child", [], name="other"), MAP, "other", "t.child", {"items": [], "concurrency": 1},
    ),
    "ask": (lambda ctx: ctx.ask("Well?"), ASK, "ask", "inquiry", QUESTION),
    "ask with all options": (
        lambda ctx: ctx.ask("Well?", schema={"type": "string"}, assignee="ada", timeout="1m", default="no", name="who"),
        ASK, "who", "inquiry",
        {**QUESTION, "schema": {"type": "string"}, "assignee": "ada", "timeout": 60, "default": "no"},
    ),
    "wait_for": (lambda ctx: ctx.wait_for("shop.paid"), WAIT_FOR, "wait_for", "wait_for_event", EVENT),
    "wait_for with all options": (
        lambda ctx: ctx.wait_for("shop.paid", when="event.payload.id == id", timeout=5, name="paid", id=7),
        WAIT_FOR, "paid", "wait_for_event",
        {**EVENT, "filter": "event.payload.id == id", "names": {"id": 7}, "timeout": 5},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STARTS)
async def test_call_starts_child_with_its_parameters(name: str) -> None:
    call, kind, child, target, parameters = STARTS[name]
    backend = Outside(_memory(), refused=True)

    async def function(ctx: DurableContext) -> None:
        await call(ctx)

    assert (await _attempt(backend, function).run({})).kind == "failed"
    [start] = backend.starts
    assert (start.record.kind, start.record.key, start.target) == (kind, Key(child, 1), target)
    assert start.parameters == parameters
