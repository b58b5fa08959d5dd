"""Calls with literal durations. Those of `refused_...` are refused when they run, and those of `accepted_...` are not."""

from __future__ import annotations

from typing import Any

import penstock
from penstock import (
    AskInquiry,
    Defer,
    DurableContext,
    Retry,
    RetryPolicy,
    action,
    ask,
    current,
    later,
)
from penstock.run.steering import defer_until, sleep

PACK = "duration_calls"


@action(pack=PACK)
async def nothing() -> None: ...


@action(pack=PACK)
async def refused_sleep(ctx: DurableContext) -> None:
    await ctx.sleep("1 day")


@action(pack=PACK)
async def refused_negative_sleep(ctx: DurableContext) -> None:
    await ctx.sleep(-1)


@action(pack=PACK)
async def refused_endless_sleep(ctx: DurableContext) -> None:
    await ctx.sleep("40000d")


@action(pack=PACK)
async def refused_block(context: DurableContext) -> None:
    async with context.timeout("10 minutes"):
        await context.sleep(1)


@action(pack=PACK)
async def refused_signal(ctx: DurableContext) -> None:
    await ctx.signal("go", timeout="10 minutes")


@action(pack=PACK)
async def refused_question(ctx: DurableContext) -> None:
    await ctx.ask("Sure?", timeout="tomorrow")


@action(pack=PACK)
async def refused_event(ctx: DurableContext) -> None:
    await ctx.wait_for("duration_calls.noted", timeout="1 h 5")


@action(pack=PACK)
async def refused_policy_of_a_step(ctx: DurableContext) -> None:
    await ctx.step("a", lambda: 1, retry={"initial_delay": "1 min"})


@action(pack=PACK)
async def refused_policy(ctx: DurableContext) -> None:
    await ctx.step("a", lambda: 1, retry=RetryPolicy(initial_delay="1 min"))


async def _refused_in_a_helper(ctx: DurableContext) -> None:
    await ctx.sleep("soon")


@action(pack=PACK)
async def calls_a_helper(ctx: DurableContext) -> None:
    await _refused_in_a_helper(ctx)


@action(pack=PACK)
async def refused_wait_for_outside() -> Any:
    return later("a", timeout="2 days")


@action(pack=PACK)
async def refused_heartbeat() -> Any:
    return penstock.later("a", heartbeat="1 h 30")


@action(pack=PACK)
async def refused_retry() -> None:
    raise Retry("1 minute")


@action(pack=PACK)
async def refused_deferral() -> None:
    raise Defer(delay="1 minute")


@action(pack=PACK)
async def refused_inquiry() -> None:
    raise AskInquiry("Sure?", timeout="1 day")


@action(pack=PACK)
async def refused_answer() -> None:
    await ask("Sure?", timeout="1 day")


@action(pack=PACK)
def refused_durable_sleep() -> None:
    sleep("1 day")


@action(pack=PACK)
async def refused_poll() -> None:
    await defer_until(lambda: False, every="1 min")


@action(pack=PACK)
async def refused_start() -> None:
    await current().start(nothing, delay="1 day")


@action(pack=PACK)
async def refused_burst() -> None:
    run = current()
    await run.start(nothing, debounce="2d", debounce_key="a")


@action(pack=PACK)
async def refused_empty_burst() -> None:
    await current().start(nothing, debounce=0, debounce_key="a")


@action(pack=PACK)
def refused_start_that_blocks() -> None:
    current().sync.start(nothing, delay="1 day")


@action(pack=PACK)
async def refused_run() -> None:
    await current().run(nothing, timeout="1 day")


@action(pack=PACK)
async def accepted_waits(ctx: DurableContext) -> None:
    await ctx.sleep("1d")
    await ctx.sleep(0)
    async with ctx.timeout(90.5):
        await ctx.sleep(duration="500ms")
    await ctx.step("a", lambda: 1, retry={"max_attempts": 2, "initial_delay": "1m"})


@action(pack=PACK)
async def accepted_start() -> None:
    run = current()
    await run.start(nothing, delay="1h30m")
    await run.start(nothing, debounce="1h 30m", debounce_key="1 day")
    await run.run(nothing, timeout=None)


@action(pack=PACK)
async def accepted_wait_for_outside(timeout: str = "2d") -> Any:
    return later("1 day", timeout=timeout)


class Sleeper:
    async def sleep(self, text: str) -> str:
        return text


@action(pack=PACK)
async def accepted_other_methods() -> str:
    ctx = Sleeper()
    return await ctx.sleep("1 day")
