"""Definitions that the flow tests use."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from penstock import Limit, NonRetryable, Retry, RetryPolicy, Rule, Trigger, action, current
from penstock.language.workflows import from_yaml
from penstock.run.steering import Defer

order_placed = Trigger(
    "shop.order_placed",
    schema={
        "type": "object",
        "properties": {"id": {"type": "integer"}, "amount": {"type": "number"}},
        "required": ["id"],
    },
)


@action(pack="shop")
async def charge(order: int, amount: float = 0) -> dict[str, Any]:
    return {"order": order, "charged": amount}


@action(pack="shop")
def count(words: str) -> int:
    return len(words.split())


@action(pack="shop", retry=RetryPolicy(max_attempts=3, initial_delay=0.05))
async def flaky(failures: int) -> int:
    if current().attempt <= failures:
        raise ConnectionError(f"attempt {current().attempt} failed")
    return current().attempt


@action(pack="shop", retry=RetryPolicy(max_attempts=5, initial_delay=0.01))
async def hopeless() -> None:
    raise NonRetryable("there is no such customer")


@action(pack="shop", retry=RetryPolicy(max_attempts=5, initial_delay=60))
async def impatient() -> int:
    if current().attempt < 3:
        raise Retry(after=0.01)
    return current().attempt


@action(pack="shop", timeout=0.3)
async def slow(seconds: float = 60) -> str:
    await asyncio.sleep(seconds)
    return "done"


@action(pack="shop")
async def wait_for(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "waited"


@action(pack="shop")
async def block(seconds: float) -> str:
    """Badly written: nothing else on its worker goes on meanwhile."""
    time.sleep(seconds)  # noqa: ASYNC251
    return "blocked"


@action(pack="shop")
async def later() -> str:
    if current().state is None:
        raise Defer(delay=0.1, state={"page": 7})
    return f"page {current().state['page']}"


@action(pack="shop")
async def unstorable() -> Any:
    return {"bad": float("nan")}


big_orders = Rule(
    "shop.big_orders",
    trigger=order_placed,
    when="payload.amount > 100",
    action=charge,
    params={"order": "{{ payload.id }}", "amount": "{{ payload.amount }}"},
)
broken_rule = Rule(
    "shop.broken",
    trigger=order_placed,
    when="payload.id == 13",
    action=charge,
    params={"order": "{{ payload.nothing }}"},
)

ACTIONS = (charge, count, flaky, hopeless, impatient, slow, wait_for, block, later, unstorable)
ALL = (*ACTIONS, order_placed, big_orders, broken_rule)


@action(pack="shop", max_recoveries=1000)
async def sturdy(n: int) -> dict[str, int]:
    """Takes a moment, and may lose any number of workers."""
    await asyncio.sleep(0.02)
    return {"n": n}


@action(pack="shop", max_recoveries=1000, limits=[Limit(20)])
async def narrow(n: int) -> dict[str, int]:
    """Return the same, twenty at a time."""
    await asyncio.sleep(0.02)
    return {"n": n}


in_steps = from_yaml("""
workflow: shop.in_steps
parameters: {n: {type: integer}}
tasks:
  first: {action: shop.sturdy, input: {n: "{{ parameters.n }}"}}
  each: {action: shop.narrow, with_items: "{{ [1, 2, 3] }}", input: {n: "{{ item }}"}, needs: [first]}
output: {n: "{{ tasks.first.result.n }}"}
""")
STURDY = (sturdy, narrow, in_steps)
"""What survives any number of losses."""
