"""The replay of a run against code: what fits, where the code goes on, and that nothing is called."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest

from penstock import DurableContext, action
from penstock.engine.durable.journal import CODE_CHANGED
from penstock.engine.durable.records import History
from penstock.engine.durable.replay import Replayed, replay
from penstock.errors import ExecutionFailed, StepFailed
from penstock.testing import DurableRun

Code = Callable[[DurableContext, int], Coroutine[Any, Any, Any]]
CALLED: list[str] = []


def call(name: str) -> str:
    CALLED.append(name)
    return name


def fail() -> None:
    raise OSError("away")


async def recorded(ctx: DurableContext, n: int) -> str:
    """The code of the run: two steps, and a signal that never comes."""
    await ctx.step("a", call, f"a{n}")
    await ctx.step("b", call, f"b{n}")
    await ctx.signal("go")
    return "gone"


async def goes_on(ctx: DurableContext, n: int) -> None:
    await recorded_steps(ctx)
    assert n == 7, "the arguments of the run"
    await ctx.step("c", call, "c")


async def recorded_steps(ctx: DurableContext) -> None:
    assert await ctx.step("a", call, "a") == "a7"
    assert await ctx.step("b", call, "b") == "b7"


async def goes_on_in_two_branches(ctx: DurableContext, n: int) -> None:
    await recorded_steps(ctx)
    await asyncio.gather(ctx.step("c", call, "c"), ctx.step("d", call, "d"))


async def goes_on_after_values(ctx: DurableContext, n: int) -> None:
    await recorded_steps(ctx)
    ctx.now(), ctx.random(), ctx.uuid()
    ctx.set("stage", "new")
    assert ctx.version("change-1")
    await ctx.step("c", call, "c")


async def sleeps(ctx: DurableContext, n: int) -> None:
    await recorded_steps(ctx)
    await ctx.sleep("1d")


async def runs_a_child(ctx: DurableContext, n: int) -> None:
    await recorded_steps(ctx)
    await ctx.run("t.other", n=n)


async def asks_for_another_step(ctx: DurableContext, n: int) -> None:
    await ctx.step("a", call, "a")
    await ctx.step("c", call, "c")


async def ends_early(ctx: DurableContext, n: int) -> None:
    await ctx.step("a", call, "a")


async def waits_early(ctx: DurableContext, n: int) -> None:
    await ctx.step("a", call, "a")
    await ctx.signal("go")
    await ctx.step("b", call, "b")


async def waits_early_beside_a_branch(ctx: DurableContext, n: int) -> None:
    async def side() -> None:
        await ctx.step("side", call, "side")

    await ctx.step("a", call, "a")
    await asyncio.gather(side(), ctx.signal("go"))
    await ctx.step("b", call, "b")


async def ends(ctx: DurableContext, n: int) -> str:
    await recorded_steps(ctx)
    return "done"


async def raises(ctx: DurableContext, n: int) -> str:
    await recorded_steps(ctx)
    ctx.on_failure(call, "undone")
    raise LookupError("no such order")


async def spins(ctx: DurableContext, n: int) -> str:
    await recorded_steps(ctx)
    raise SystemExit(3)


FITS: dict[str, tuple[Code, bool, str]] = {
    "the code of the run waits": (recorded, True, "it waits"),
    "new step": (goes_on, True, "it goes on with step c"),
    "new branches": (goes_on_in_two_branches, True, "it goes on with step c, step d"),
    "new values, which are not written": (goes_on_after_values, True, "it goes on with step c"),
    "new sleep": (sleeps, True, "it goes on with sleep sleep"),
    "new child": (runs_a_child, True, "it goes on with run other"),
    "another step": (
        asks_for_another_step,
        False,
        "ReplayMismatch: at position 2 the function requests step c, but its run has recorded step b at position 2. "
        + f"{CODE_CHANGED}.",
    ),
    "end before a recorded step": (
        ends_early,
        False,
        "ReplayMismatch: the function has ended, but its run has recorded step b at position 2, "
        "which the function did not request. " + f"{CODE_CHANGED}.",
    ),
    "wait before a recorded step": (
        waits_early,
        False,
        "it waits, and has not come to step b, which is recorded at position 2",
    ),
    "wait before a recorded step, beside a new branch": (
        waits_early_beside_a_branch,
        False,
        "it goes on with step 1/side, and has not come to step b, which is recorded at position 2",
    ),
    "new end": (ends, True, "it ends with its result"),
    "new error, and nothing is undone": (raises, True, "LookupError: no such order"),
    "exit": (spins, True, "SystemExit: 3"),
}


@pytest.mark.parametrize("name", FITS)
async def test_replay_of_two_steps_and_a_signal(name: str) -> None:
    code, fits, says = FITS[name]
    history = await _history(recorded)
    CALLED.clear()
    assert await replay(code, {"n": 7}, history) == Replayed(fits, says)
    assert CALLED == []


async def ends_with_its_child(ctx: DurableContext, n: int) -> Any:
    with suppress(StepFailed):
        await ctx.step("fails", fail)
    await ctx.sleep("1d")
    return await ctx.run("t.child", n=n)


async def uses_its_child(ctx: DurableContext, n: int) -> Any:
    await asyncio.gather(ends_with_its_child_again(ctx, n))


async def ends_with_its_child_again(ctx: DurableContext, n: int) -> None:
    assert await ends_with_its_child(ctx, n) == {"n": 7}


async def asks(ctx: DurableContext, n: int) -> Any:
    return await ctx.ask("Well?")


async def cleans_up(ctx: DurableContext, n: int) -> Any:
    try:
        await ctx.sleep("10d")
    finally:
        await ctx.step("clean", call, "clean")


RUNS: dict[str, tuple[Code, Code, bool, str]] = {
    "ended run": (ends_with_its_child, ends_with_its_child, True, "it ends with its result"),
    "ended run in another branch": (
        ends_with_its_child,
        uses_its_child,
        False,
        "it goes on with step 1/fails, and has not come to step fails, which is recorded at position 1",
    ),
    "open question": (asks, asks, True, "it waits"),
    "cancelled run": (
        cleans_up,
        cleans_up,
        True,
        "cancelled: the run was asked to end as cancelled",
    ),
}


@pytest.mark.parametrize("name", RUNS)
async def test_replay_of_run(name: str) -> None:
    code, other, fits, says = RUNS[name]
    history = await _history(code)
    CALLED.clear()
    assert await replay(other, {"n": 7}, history) == Replayed(fits, says)
    assert CALLED == []


async def _history(code: Code) -> History:
    """Return what a run of this code has recorded, once it has ended or waits for what never comes."""
    run = DurableRun()
    run.child("t.child", lambda n: {"n": n})
    if code is cleans_up:
        run.cancel(after="1d")
    with suppress(AssertionError, ExecutionFailed):
        await run(action(pack="t", ref="t.code")(code), n=7)
    return run._memory.load()
