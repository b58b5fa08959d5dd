"""A human's approval, with a reminder every day and an end after a week."""

from __future__ import annotations

import asyncio

from penstock import DurableContext, Pack, action
from penstock.errors import StepTimedOut

pack = Pack("office")
DAYS = 7


def remind(manager: str, purchase: str, day: int) -> None:
    print(f"{manager}, for {day} days {purchase} has been waiting for you")


def buy(purchase: str) -> str:
    return f"bought {purchase}"


@action
async def approval(ctx: DurableContext, purchase: str, manager: str) -> str:
    """Buys what the manager approves of."""
    answer = asyncio.create_task(
        ctx.ask(f"Buy {purchase}?", schema={"type": "boolean"}, assignee=manager, timeout=f"{DAYS}d")
    )
    reminders = asyncio.create_task(_remind(ctx, purchase, manager))
    try:
        approved = await answer
    except StepTimedOut:
        return "nobody answered"
    finally:
        reminders.cancel()
    return str(await ctx.step("buy", buy, purchase)) if approved else "refused"


async def _remind(ctx: DurableContext, purchase: str, manager: str) -> None:
    for day in range(1, DAYS):
        await ctx.sleep("1d")
        await ctx.step("remind", remind, manager, purchase, day)
