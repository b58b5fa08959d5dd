"""The rule of docs/durable.md that turns an event into a signal: the function gets an event that came before its wait."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from penstock import DurableContext, action
from penstock.language.loading import load
from tests.flows.installation import Installation

PAGE = Path(__file__).parents[2] / "docs/durable.md"
SECTION = "### An event may come before the wait"


async def prepare() -> None: ...


@action(pack="shop")
async def order(ctx: DurableContext) -> Any:
    await ctx.sleep(1)
    await ctx.step("prepare", prepare)
    return await ctx.signal("paid", timeout="14d")


FUNCTION = """
from penstock import DurableContext

@action(pack="shop")
async def place_order(ctx: DurableContext, order: int, amount: float) -> float:
    return await ctx.signal("paid", timeout="14d")
"""


def fences() -> list[str]:
    section = PAGE.read_text().partition(SECTION)[2].partition("\n##")[0]
    return re.findall(r"^```python\n(.*?)^```", section, re.M | re.S)


async def test_function_gets_an_event_of_before_its_wait(house: Installation, tmp_path: Path) -> None:
    page = tmp_path / "order_rule.py"
    page.write_text(fences()[0])
    await house.start(*load(page), order)
    id = await house.client.start("shop.order", key="order-7")
    await house.client.publish("shop.paid", {"order": 7, "amount": 25})
    assert await house.client.result(id, timeout=20) == 25


async def test_action_of_a_rule_starts_the_function_with_a_key(house: Installation, tmp_path: Path) -> None:
    rule, starter = fences()
    page = tmp_path / "order_start.py"
    page.write_text(rule + FUNCTION + starter)
    await house.start(*load(page))
    await house.client.run("shop.begin_order", {"order": 7, "amount": 2.5}, timeout=20)
    before = await house.rows("select id from execution")
    id = await house.client.start("shop.place_order", {"order": 7, "amount": 2.5}, key="order-7")
    assert id in {row["id"] for row in before}
    await house.client.publish("shop.paid", {"order": 7, "amount": 2})
    assert await house.client.result(id, timeout=20) == 2
