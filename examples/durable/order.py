"""An order with compensation: what was done is undone, the last first, when a later step fails for good."""

from __future__ import annotations

from penstock import DurableContext, Pack, action

pack = Pack("shop")


def reserve(order: int) -> str:
    return f"reservation-{order}"


def release(reservation: str) -> None:
    print(f"{reservation} is free again")


def charge(order: int, amount: float, key: str) -> str:
    return f"payment-{order}"  # a payment service makes one payment of several calls with this key


def refund(payment: str) -> None:
    print(f"{payment} is paid back")


def ship(order: int) -> str:
    return f"parcel-{order}"


@action
async def place_order(ctx: DurableContext, order: int, amount: float) -> str:
    """Reserves, charges and ships; returns the parcel."""
    reservation = await ctx.step("reserve", reserve, order)
    ctx.on_failure(release, reservation)
    payment = await ctx.step("charge", charge, order, amount, str(ctx.uuid()), retry=3)
    ctx.on_failure(refund, payment)
    return str(await ctx.step("ship", ship, order, retry={"max_attempts": 5, "initial_delay": "10s"}))
