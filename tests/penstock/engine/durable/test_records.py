"""The records of runs: what each call leaves, in which order its result is told, and that neither a crash nor a replay changes
them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import timedelta
from typing import Any

import orjson
import pytest

from penstock import DurableContext, action
from penstock.engine.durable.records import SLEEP, Awaited, Key, Record, instant_of
from penstock.errors import ExecutionFailed, StepFailed, StepTimedOut
from penstock.language.terms.ids import new_id
from penstock.testing import DurableRun, crash_everywhere
from penstock.testing.durable_run import BEGIN

Code = Callable[[DurableContext], Coroutine[Any, Any, Any]]


async def call(name: str, turns: int = 0) -> str:
    for _ in range(turns):
        await asyncio.sleep(0)
    return name


async def hang() -> None:
    await asyncio.Event().wait()


async def fail() -> None:
    raise OSError("away")


async def steps_beside_sleeps(ctx: DurableContext) -> None:
    async def naps(name: str, days: int) -> None:
        await ctx.sleep(f"{days}d")
        await ctx.step(name, call, name)

    await ctx.step("a", call, "a")
    await asyncio.gather(naps("late", 2), naps("early", 1))
    await ctx.step("a", call, "again")


async def values(ctx: DurableContext) -> None:
    ctx.set("stage", 1)
    assert ctx.version("change-1")
    ctx.set("stage", 2)
    await ctx.step("a", call, "a")
    ctx.set("stage", 3)
    await ctx.sleep("1d")


async def failed_step(ctx: DurableContext) -> None:
    day = 24 * 3600
    twice = {"max_attempts": 2, "initial_delay": day, "max_delay": day, "jitter": 0}
    with suppress(StepFailed):
        await ctx.step("fails", fail, retry=twice)
    await ctx.step("after", call, "after")


async def children(ctx: DurableContext) -> None:
    await ctx.run("t.child", n=1)
    with suppress(StepFailed):
        await ctx.run("t.broken", n=1)
    await ctx.map("t.child", [{"n": 1}])
    await ctx.ask("Well?")
    with suppress(StepTimedOut):
        await ctx.wait_for("t.event", timeout="1d")
    await ctx.step("after", call, "after")


async def signals(ctx: DurableContext) -> None:
    await ctx.signal("go")
    with suppress(StepTimedOut):
        await ctx.signal("go", timeout="1d")
    await ctx.step("between", call, "between")
    await ctx.signal("go", timeout="9d")
    await ctx.step("after", call, "after")


async def cancelled_waits(ctx: DurableContext) -> None:
    await _cancels(ctx, ctx.sleep("9d"), ctx.ask("Well?"), ctx.signal("go", timeout="9d"), ctx.signal("go"))
    await ctx.signal("go")


async def cancelled_step(ctx: DurableContext) -> None:
    await _cancels(ctx, ctx.step("hangs", hang), ctx.step("hangs", hang))


async def _cancels(ctx: DurableContext, *waits: Coroutine[Any, Any, Any]) -> None:
    """Cancel these waits when a quick step has ended, and sleep."""
    tasks = [asyncio.create_task(wait) for wait in waits]
    await ctx.step("quick", call, "quick", 50)
    for task in tasks:
        task.cancel()
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(end) for end in ends] == [asyncio.CancelledError] * len(waits)
    await ctx.step("after", call, "after")
    await ctx.sleep("1d")
    await ctx.step("last", call, "last")


async def limits(ctx: DurableContext) -> None:
    async with ctx.timeout("2d"):
        await ctx.sleep("1d")
    with suppress(StepTimedOut):
        async with ctx.timeout("2d"):
            await ctx.sleep("9d")
    await ctx.step("after", call, "after")


async def cleans_up(ctx: DurableContext) -> None:
    ctx.on_failure(call, "undone")
    try:
        await ctx.sleep("9d")
    finally:
        await ctx.step("clean", call, "clean")


RECORDED: dict[str, tuple[Code, list[str]]] = {
    "a call counts in its branch, and results are told by instant": (steps_beside_sleeps, [
        'a: step completed, at 1 after 0, told 1, tries 1, "a"',
        "1/sleep: sleep started, at 1 after 1, told 4, tries 0, until hour 48",
        "2/sleep: sleep started, at 1 after 1, told 2, tries 0, until hour 24",
        '2/early: step completed, at 2 after 2, told 3, tries 1, "early"',
        '1/late: step completed, at 2 after 4, told 5, tries 1, "late"',
        'a (2): step completed, at 2 after 5, told 6, tries 1, "again"',
    ]),
    "state has no place, and its last value stays": (values, [
        "state/stage: state completed, at 0 after 0, told None, tries 1, 3",
        "change-1: version completed, at 1 after 0, told None, tries 1, true",
        'a: step completed, at 2 after 0, told 1, tries 1, "a"',
        "sleep: sleep started, at 3 after 1, told None, tries 0, until hour 24",
    ]),
    "a failed step has all its tries": (failed_step, [
        "fails: step failed, at 1 after 0, told 1, tries 2, away",
        'after: step completed, at 2 after 1, told 2, tries 1, "after"',
    ]),
    "a child is told once, however it ends": (children, [
        "child: run started, at 1 after 0, told 1, tries 0",
        "broken: run started, at 2 after 1, told 2, tries 0",
        "child (2): map started, at 3 after 2, told 3, tries 0",
        "ask: ask started, at 4 after 3, told 4, tries 0",
        "wait_for: wait_for started, at 5 after 4, told 5, tries 0",
        'after: step completed, at 6 after 5, told 6, tries 1, "after"',
    ]),
    "a deadline that passed has failed, another one has not": (signals, [
        "signal/go: signal completed, at 0 after 0, told 1, tries 1, 1",
        "timeout of go: sleep failed, at 1 after 1, told 2, tries 1, until hour 144, nothing was told in time",
        'between: step completed, at 2 after 2, told 3, tries 1, "between"',
        "timeout of go (2): sleep started, at 3 after 3, told None, tries 0, until hour 360",
        "signal/go (2): signal completed, at 0 after 0, told 4, tries 1, 2",
        'after: step completed, at 4 after 4, told 5, tries 1, "after"',
    ]),
    "a cancelled wait takes the next number at once": (cancelled_waits, [
        "sleep: sleep cancelled, at 1 after 0, told 2, tries 0, until hour 216",
        "ask: ask cancelled, at 2 after 0, told 3, tries 0",
        "timeout of go: sleep cancelled, at 3 after 0, told 4, tries 0, until hour 216",
        'quick: step completed, at 4 after 0, told 1, tries 1, "quick"',
        'after: step completed, at 5 after 1, told 5, tries 1, "after"',
        "sleep (2): sleep started, at 6 after 5, told 6, tries 0, until hour 24",
        'last: step completed, at 7 after 6, told 7, tries 1, "last"',
        "signal/go: signal completed, at 0 after 0, told None, tries 1, 1",
    ]),
    "a cancelled step takes its number once it has ended": (cancelled_step, [
        "hangs: step cancelled, at 1 after 0, told 2, tries 0",
        "hangs (2): step cancelled, at 2 after 0, told 3, tries 0",
        'quick: step completed, at 3 after 0, told 1, tries 1, "quick"',
        'after: step completed, at 4 after 3, told 4, tries 1, "after"',
        "sleep: sleep started, at 5 after 4, told 5, tries 0, until hour 24",
        'last: step completed, at 6 after 5, told 6, tries 1, "last"',
    ]),
    "a limit that passes is told, and one that does not is cancelled": (limits, [
        "timeout: sleep cancelled, at 1 after 0, told 2, tries 0, until hour 48",
        "sleep: sleep started, at 2 after 0, told 1, tries 0, until hour 24",
        "timeout (2): sleep started, at 3 after 1, told 3, tries 0, until hour 72",
        "sleep (2): sleep cancelled, at 4 after 1, told 4, tries 0, until hour 240",
        'after: step completed, at 5 after 3, told 5, tries 1, "after"',
    ]),
    "the end of a run is told, and an undo has no place": (cleans_up, [
        "sleep: sleep cancelled, at 1 after 0, told 2, tries 0, until hour 216",
        "end/run: end completed, at 0 after 0, told 1, tries 1, \"cancelled\"",
        'clean: step completed, at 2 after 1, told 3, tries 1, "clean"',
        'on failure call: step completed, at 0 after 0, told 4, tries 1, "undone"',
    ]),
}  # fmt: skip
LOST_IN_A_CRASH = (cancelled_step,)
"""Code with a step whose function hangs until it is cancelled. After a crash the function is not called again."""


def _line(record: Record) -> str:
    parts = [
        f"{record.key}: {record.kind} {record.status}",
        f"at {record.position} after {record.asked_after}",
        f"told {record.told}",
        f"tries {record.tries}",
    ]
    if record.kind == SLEEP and record.result:
        parts.append(f"until hour {round((instant_of(record) - BEGIN) / timedelta(hours=1))}")
    elif record.result is not None:
        parts.append(record.result)
    if record.error:
        parts.append(orjson.loads(record.error)["message"])
    return ", ".join(parts)


@pytest.mark.parametrize("name", RECORDED)
@crash_everywhere
async def test_records_of_run(run: DurableRun, name: str) -> None:
    code, lines = RECORDED[name]
    run.child("t.child", lambda n: n)
    run.answer("yes", after="1d")
    run.signal("go", 1, after="5d")
    run.signal("go", 2, after="9d")
    if code is cleans_up:
        run.cancel(after="1d")
    with suppress(ExecutionFailed):
        await run(action(pack="t", ref="t.code")(code))
    recorded = {_line(record) for record in run._memory.records.values()}
    assert recorded == set(lines) or (run.crashed and code in LOST_IN_A_CRASH)


def test_awaited_things_are_json() -> None:
    child = new_id()
    awaited = Awaited((child,), BEGIN, (Key("signal/go", 2),), ("the signal go",))
    document = {"children": [str(child)], "until": "2026-01-01T00:00:00+00:00", "signals": [["signal/go", 2]]}
    assert awaited.document() == document | {"causes": ["the signal go"]}
    assert Awaited().document() == {"children": [], "until": None, "signals": [], "causes": []}


@pytest.mark.parametrize(
    ("key", "label"),
    [
        (Key("fetch", 1), "fetch"),
        (Key("fetch", 2), "fetch:2"),
        (Key("1/fetch:2", 1), "1/fetch:2:1"),
        (Key("fetch:2", 3), "fetch:2:3"),
        (Key("fetch:0", 1), "fetch:0"),
        (Key("at:noon", 1), "at:noon"),
    ],
)
def test_label_of_a_key_means_that_key_alone(key: Key, label: str) -> None:
    assert (key.label, Key.of_label(label)) == (label, key)
