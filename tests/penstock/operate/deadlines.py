"""A durable function whose deadlines pass as planned, and whose step and child fail."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from penstock import DurableContext, Trigger, action
from penstock.errors import StepFailed, StepTimedOut

PAID = Trigger("deadlines.paid", schema={"order": "integer"})


@action(pack="deadlines", timeout=0.3)
async def hangs() -> None:
    await asyncio.sleep(3600)


async def breaks() -> None:
    raise ValueError("the step is broken")


@action(pack="deadlines")
async def waits(ctx: DurableContext) -> str:
    with suppress(StepTimedOut):
        await ctx.signal("early", timeout=0.05)
    with suppress(StepTimedOut):
        await ctx.wait_for(PAID, timeout=0.3)
    with suppress(StepTimedOut):
        await ctx.ask("Ready?", timeout=0.3)
    with suppress(StepTimedOut):
        async with ctx.timeout(0.2):
            await ctx.signal("never")
    await ctx.first(brief=ctx.sleep(0.1), paid=ctx.wait_for(PAID, name="pay"), long=ctx.sleep("1d"))
    with suppress(StepFailed):
        await ctx.step("breaks", breaks)
    with suppress(StepFailed):
        await ctx.run(hangs)
    return "over"


STATUSES = {
    "timeout of early": "timeout",
    "wait_for": "timeout",
    "ask": "timeout",
    "timeout": "timeout",
    "sleep": "completed",
    "pay": "cancelled",
    "sleep:2": "cancelled",
    "breaks": "failed",
    "hangs": "timeout",
}
"""The status of each step in the API and in `penstock show --json`."""
PLANNED = {"timeout of early", "wait_for", "ask", "timeout"}
"""The steps that people see as `timed out`."""
ALL = (PAID, hangs, waits)
