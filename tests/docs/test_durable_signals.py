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


async def test_function_gets_an_event_of_before_its_wait(house: Installation, tmp_path: Path) -> None:
    section = PAGE.read_text().partition(SECTION)[2].partition("\n##")[0]
    [code] = re.findall(r"^```python\n(.*?)^```", section, re.M | re.S)
    page = tmp_path / "order_rule.py"
    page.write_text(code)
    await house.start(*load(page), order)
    id = await house.client.start("shop.order", key="order-7")
    await house.client.publish("shop.paid", {"order": 7, "amount": 25})
    assert await house.client.result(id, timeout=20) == 25
