"""A subscription: a month of sleep, a charge, and so on, until it is cancelled. It holds no worker while it sleeps."""

from __future__ import annotations

from penstock import DurableContext, Pack, action
from penstock.errors import StepTimedOut

pack = Pack("billing")


def charge(customer: str, month: int) -> None:
    print(f"{customer} pays for month {month}")


def say_goodbye(customer: str, months: int) -> None:
    print(f"{customer} has paid for {months} months")


@action
async def subscription(ctx: DurableContext, customer: str, most_months: int = 120) -> int:
    """Returns the months that were paid. `penstock signal ID cancel` ends it."""
    paid = 0
    while paid < most_months:
        paid += 1
        await ctx.step("charge", charge, customer, paid, retry=5)
        ctx.set("paid", paid)
        try:
            await ctx.signal("cancel", timeout="30d")
            break
        except StepTimedOut:
            continue
    await ctx.step("goodbye", say_goodbye, customer, paid)
    return paid
