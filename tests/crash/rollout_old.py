"""The old code of durable functions: the module of a worker."""

from __future__ import annotations

from penstock import DurableContext, action
from tests.crash.rollout import call, die, paid, undo

PAUSE_S = 0.2


@action(pack="rollout", max_recoveries=100)
async def guarded(ctx: DurableContext) -> list[str]:
    steps = [await ctx.step("book", call, "book")]
    ctx.on_failure(undo, "book")
    die("booked")
    await ctx.sleep(PAUSE_S)
    steps.append(await ctx.step("charge", call, "charge"))
    await ctx.sleep(PAUSE_S)
    steps.append(await ctx.step("ship", call, "ship"))
    return steps


@action(pack="rollout", max_recoveries=100)
async def renamed(ctx: DurableContext) -> list[str]:
    steps = [await ctx.step("book", call, "book")]
    ctx.on_failure(undo, "book")
    die("booked")
    await ctx.sleep(PAUSE_S)
    steps.append(await ctx.step("charge", call, "charge"))
    await ctx.sleep(PAUSE_S)
    steps.append(await ctx.step("ship", call, "ship"))
    return steps


@action(pack="rollout", max_recoveries=100)
async def waits(ctx: DurableContext) -> list[str]:
    steps = [await ctx.step("book", call, "book")]
    event = await ctx.wait_for(paid)
    return [*steps, event["trigger"], await ctx.step("ship", call, "ship")]


OLD = (guarded, renamed, waits, paid)
