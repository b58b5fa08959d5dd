"""Actions and workflows with a deadline of each kind, which `test_deadlines.py` reaches."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

from penstock import (
    AskInquiry,
    Defer,
    DurableContext,
    Retry,
    Trigger,
    action,
    current,
    http_action,
    inquiry,
    later,
    wait_for_event,
    workflow,
)
from penstock.errors import StepTimedOut
from penstock.run.steering import ask, defer_until, sleep

SPAN = timedelta(days=14, microseconds=1)
SECONDS = SPAN.total_seconds()
WAIT = f"{SECONDS:f}s"
SHORT = timedelta(seconds=59, microseconds=1)
"""A time below the default timeout of an attempt, and that of a burst."""
START = datetime(2026, 2, 28, 23, 59, 58, 999_999, tzinfo=UTC)
ONCE_MORE = {"max_attempts": 2, "initial_delay": SECONDS, "max_delay": SECONDS, "jitter": 0}

came = Trigger("deadlines.came")
CALLED: list[str] = []


def work() -> None:
    """Take some time of the machine, which must not pass on the clock of the simulation."""
    time.sleep(0.002)


def fails_once() -> str:
    work()
    CALLED.append("step")
    if len(CALLED) == 1:
        raise OSError("away")
    return "there"


@action(pack="deadlines")
async def sleeps(ctx: DurableContext) -> None:
    work()
    await ctx.sleep(SPAN)


@action(pack="deadlines")
async def sleeps_thrice(ctx: DurableContext) -> None:
    for part in (SPAN / 3, SPAN / 3, SPAN - 2 * (SPAN / 3)):
        await ctx.step("work", work)
        await ctx.sleep(part)


@action(pack="deadlines")
async def sleeps_after_signal(ctx: DurableContext) -> None:
    await ctx.signal("go")
    work()
    await ctx.sleep(SPAN)


@action(pack="deadlines")
async def awaits_signal(ctx: DurableContext) -> None:
    work()
    await ctx.signal("go", timeout=SPAN)


@action(pack="deadlines")
async def has_block(ctx: DurableContext) -> None:
    async with ctx.timeout(SPAN):
        work()
        await ctx.signal("go")


@action(pack="deadlines")
async def asks(ctx: DurableContext) -> None:
    work()
    await ctx.ask("Go?", timeout=SPAN)


@action(pack="deadlines")
async def asks_with_default(ctx: DurableContext) -> Any:
    work()
    return await ctx.ask("Go?", timeout=SPAN, default=True)


@action(pack="deadlines")
async def awaits_event(ctx: DurableContext) -> None:
    work()
    await ctx.wait_for(came, timeout=SPAN)


@action(pack="deadlines")
async def takes_first(ctx: DurableContext) -> str:
    work()
    return (await ctx.first(paid=ctx.signal("paid"), late=ctx.sleep(SPAN))).name


@action(pack="deadlines")
async def retries_step(ctx: DurableContext) -> Any:
    return await ctx.step("try", fails_once, retry=ONCE_MORE)


@action(pack="deadlines")
async def retries_step_with_jitter(ctx: DurableContext) -> Any:
    return await ctx.step("try", fails_once, retry={**ONCE_MORE, "jitter": 0.5})


@action(pack="deadlines", retry=ONCE_MORE)
async def retries_function(ctx: DurableContext) -> str:
    return fails_once()


@action(pack="deadlines")
async def runs_child(ctx: DurableContext) -> Any:
    work()
    return await ctx.run(retries)


@action(pack="deadlines")
async def cleans_up(ctx: DurableContext) -> Any:
    try:
        async with ctx.timeout(SPAN):
            await ctx.sleep(2 * SPAN)
    except StepTimedOut:
        return (ctx.now() - START).total_seconds()


@action(pack="deadlines")
async def works_in_block(ctx: DurableContext) -> str:
    async with ctx.timeout("1ms"):
        await ctx.step("work", work)
    return "there"


@action(pack="deadlines")
async def sleeps_in_clean_up(ctx: DurableContext) -> None:
    try:
        await ctx.sleep(SPAN)
    finally:
        await ctx.sleep("10ms")
        CALLED.append("cleaned up")


@action(pack="deadlines", retry={**ONCE_MORE, "jitter": 0.5})
async def retries() -> str:
    return fails_once()


@action(pack="deadlines", retry={"max_attempts": 2, "jitter": 0})
async def asks_for_retry() -> str:
    if current().attempt == 1:
        raise Retry(after=SPAN)
    return "there"


@action(pack="deadlines")
async def defers() -> str:
    work()
    if current().state is None:
        raise Defer(delay=SPAN, state=1)
    return "there"


@action(pack="deadlines")
async def defers_to_instant() -> str:
    work()
    if current().state is None:
        raise Defer(until=START + SPAN, state=1)
    return "there"


@action(pack="deadlines")
async def defers_until() -> None:
    work()
    await defer_until(START - SPAN)
    await defer_until(START + SPAN / 2)
    await defer_until(START + SPAN)
    await defer_until(START + SPAN / 2)


@action(pack="deadlines")
async def looks_again() -> None:
    CALLED.append("looked")
    await defer_until(lambda: len(CALLED) > 1, every=SPAN)


@action(pack="deadlines")
def sleeps_durably() -> None:
    work()
    sleep(SPAN)


@action(pack="deadlines")
def poses_inquiry() -> AskInquiry:
    work()
    return AskInquiry("Go?", timeout=SPAN)


@action(pack="deadlines")
async def awaits_answer() -> Any:
    work()
    return await ask("Go?", timeout=SPAN)


@action(pack="deadlines", timeouts={"waiting": SPAN})
def poses_bounded_inquiry() -> AskInquiry:
    return AskInquiry("Go?")


@action(pack="deadlines", timeouts={"total": SPAN})
def poses_inquiry_in_total_time() -> AskInquiry:
    return AskInquiry("Go?")


@action(pack="deadlines")
async def waits_outside() -> Any:
    work()
    return later("outside", timeout=SPAN)


@action(pack="deadlines")
async def expects_heartbeat() -> Any:
    await current().callback()
    work()
    return later("outside", heartbeat=SPAN)


@action(pack="deadlines")
def plain() -> str:
    work()
    return "there"


@action(pack="deadlines", timeout=WAIT)
def limited() -> str:
    work()
    return "there"


@action(pack="deadlines")
async def starts_later(at: bool) -> None:
    work()
    if at:
        await current().start(plain, at=START + SPAN)
    else:
        await current().start(plain, delay=SPAN)


@action(pack="deadlines")
async def starts_burst() -> None:
    work()
    await current().start(plain, debounce=SHORT, debounce_key="plain")


@workflow(pack="deadlines")
def with_inquiry() -> None:
    inquiry("Go?", timeout=WAIT).set(name="approve")


@workflow(pack="deadlines")
def with_event() -> None:
    wait_for_event(came, timeout=WAIT).set(name="event")


@workflow(pack="deadlines")
def with_delay() -> None:
    plain().set(delay=SECONDS)


@workflow(pack="deadlines", timeout=WAIT)
def with_limit() -> None:
    inquiry("Go?").set(name="approve")


@workflow(pack="deadlines")
def with_task_limit() -> None:
    poses_inquiry().set(timeouts={"waiting": 2 * SECONDS, "total": SECONDS})


http = http_action(
    "deadlines.http",
    "https://shop.example.org/",
    retry={"max_attempts": 2, "initial_delay": "1s", "jitter": 0},
    options={"request": {}},
)
