"""The nondeterministic calls, which are named."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from datetime import datetime, timedelta
from time import monotonic

from penstock import DurableContext, current
from penstock.engine.durable.lint import lost_calls, nondeterminism, unknown_methods


async def bad(ctx: DurableContext) -> None:
    time.time()
    monotonic()
    random.random()
    uuid.uuid4()
    datetime.now()
    open("x")  # noqa: ASYNC230, SIM115
    await asyncio.sleep(1)


async def bad_inside(ctx: DurableContext) -> None:
    async def branch() -> None:
        await ctx.sleep(time.time())

    await asyncio.gather(branch())


async def good(ctx: DurableContext) -> None:
    await ctx.step("now", time.time)
    await ctx.step("later", lambda: time.time() + random.random())

    async def inside() -> None:
        time.time()

    await ctx.step("inside", inside)
    await asyncio.gather(ctx.sleep(timedelta(days=1).total_seconds()))
    ctx.now()
    uuid.UUID(int=1)


async def forgets() -> None:
    run = current()
    current().publish("shop.paid", {})  # type: ignore[unused-coroutine]
    run.start("shop.charge", {})  # type: ignore[unused-coroutine]
    run.log("sent")
    await current().signal(uuid.UUID(int=1), "paid")


async def forgets_in_context(ctx: DurableContext) -> None:
    ctx.sleep(1)  # type: ignore[unused-coroutine]
    ctx.on_failure(good)
    await ctx.sleep(1)


def sends() -> None:
    current().sync.publish("shop.paid", {})


def test_call_without_await_is_named() -> None:
    calls = lost_calls(forgets, durable=False)
    assert [call.call for call in calls] == ["current().publish", "run.start"]
    assert calls[0].line == forgets.__code__.co_firstlineno + 2
    assert [call.call for call in lost_calls(forgets_in_context, durable=True)] == ["ctx.sleep"]
    assert lost_calls(good, durable=True) == lost_calls(sends, durable=False) == []


def test_a_call_that_may_differ_in_the_next_attempt_is_named() -> None:
    found = nondeterminism(bad)
    assert [one.call for one in found] == [
        "time.time()", "time.monotonic()", "random.random()", "uuid.uuid4()", "datetime.datetime.now()",
        "open()", "asyncio.sleep()",
    ]  # fmt: skip
    assert found[0].line == bad.__code__.co_firstlineno + 1
    assert "ctx.now()" in str(found[0])


def test_function_inside_that_uses_the_context_is_examined() -> None:
    assert [call.call for call in nondeterminism(bad_inside)] == ["time.time()"]


def test_steps_may_do_anything() -> None:
    assert nondeterminism(good) == []


async def with_unknown_methods(ctx: DurableContext) -> None:
    await ctx.start("shop.charge")  # type: ignore[attr-defined]
    await ctx.slep(5)  # type: ignore[attr-defined]
    await ctx.sleep(5)


def test_methods_that_the_context_does_not_have_are_named() -> None:
    first, second = unknown_methods(with_unknown_methods)
    assert (first.name, second.name) == ("ctx.start", "ctx.slep")
    assert "current().start(...)" in first.hint
    assert "'sleep'" in second.hint
    assert second.line == first.line + 1
    assert unknown_methods(good) == []
