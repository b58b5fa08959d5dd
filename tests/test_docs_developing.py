"""docs/developing.md says what is so: its Python runs."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from penstock.language.definitions import action
from tests.flows.installation import Installation

PAGE = (Path(__file__).parents[1] / "docs/developing.md").read_text()


@action(pack="shop")
async def charge(order: int, amount: float) -> str:
    return f"{order}: {amount:g}"


async def test_the_calls_of_the_page_start_the_named_work(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", database)
    monkeypatch.delenv("PENSTOCK_BROKER_URL", raising=False)
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S))
    names: dict[str, Any] = {"charge": charge}
    exec(code.replace("from shop import charge\n", ""), names)
    async with Installation(database, None) as house:
        await house.start(charge)
        await names["main"]()
        assert await asyncio.to_thread(names["view"], 8) == "8: 25"
        assert len(await house.rows("select from execution")) == 5
