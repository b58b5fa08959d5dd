"""The definitions that the tests of simulations run."""

from __future__ import annotations

from typing import Any

from penstock import (
    AskInquiry,
    Defer,
    Rule,
    Trigger,
    action,
    ask,
    command_action,
    current,
    each,
    fail,
    inquiry,
    on_exit,
    wait_for_event,
    workflow,
)

paid = Trigger("shop.paid", schema={"order": "integer"})


@action(pack="shop", retry={"max_attempts": 3, "initial_delay": "10s"}, timeout="1m")
async def charge(order: int, amount: float = 1.0) -> dict[str, Any]:
    current().log(f"charging {order}")
    return {"order": order, "attempt": current().attempt, "token": current().idempotency_token}


@action(pack="shop", on_worker_loss="fail")
def ship(order: int) -> str:
    return f"shipped {order}"


@action(pack="shop", on_failure="shop.tell", timeouts={"total": "1h"})
def poll(order: int) -> int:
    seen = current().state or 0
    if seen < order:
        raise Defer(delay=600, state=seen + 1)
    return int(seen)


@action(pack="shop")
def tell(execution: str, status: str, result: Any, error: Any) -> str:
    return f"{status}: {error['type']}"


@action(pack="shop")
def approve(order: int) -> Any:
    return AskInquiry("Really?", schema={"type": "boolean"}, timeout=3600, default=False, assignee="ops")


@action(pack="shop")
async def interview() -> str:
    first = await ask("Your name?")
    return f"{first} {await ask('And the other one?')}"


shout = command_action("shop.shout", command=["tr", "a-z", "A-Z"], parameters={"what": "string"})


@workflow(pack="shop")
def deliver(order: int):  # type: ignore[no-untyped-def]
    charged = charge(order=order).set(name="pay")
    return ship(order=order).after(charged)


@workflow(pack="shop", timeout="3d")
def sell(orders: list[int]):  # type: ignore[no-untyped-def]
    asked = inquiry("Sell?", schema={"type": "boolean"}, default=True, timeout="1h").set(name="asked")
    delivered = deliver(order=each(orders)).after(asked).set(name="delivered", concurrency=1)
    on_exit(tell(execution="", status="over", result=None, error={"type": "none"}))
    return delivered


@workflow(pack="shop")
def settle(order: int):  # type: ignore[no-untyped-def]
    seen = wait_for_event("shop.paid", filter="event.payload.order == parameters.order").set(name="seen")
    return {"seen": seen.payload, "shout": shout(what="paid").after(seen)}


@workflow(pack="shop")
def refuse():  # type: ignore[no-untyped-def]
    fail("never")


pay_orders = Rule("shop.pay_orders", trigger=paid, action=charge, params={"order": "{{ payload.order }}"})
