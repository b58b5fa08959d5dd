"""Waiting for results while PostgreSQL gives no answer that is one."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import pytest

from penstock.ids import new_id
from tests.flows import shop
from tests.flows.installation import Installation


@pytest.mark.parametrize("table", ["result", "archive"])
async def test_whoever_waits_is_told_what_ended_the_watch(house: Installation, table: str) -> None:
    """`result` is read at each look, `archive` for what nobody knows. Who waits next is looked for anew."""
    await house.apply(*shop.ALL)
    id = new_id() if table == "archive" else await house.client.start("shop.charge", {"order": 1})
    await house.rows(f"alter table {table} rename to gone")
    async with asyncio.timeout(30):
        with pytest.raises(asyncpg.UndefinedTableError):
            await asyncio.gather(house.client.result(id), house.client.result(id))
    await house.rows(f"alter table gone rename to {table}")
    await house.start(*shop.ALL)
    assert await house.client.run("shop.charge", {"order": 2}, timeout=20) == {"order": 2, "charged": 0}


async def test_an_id_that_came_as_text_is_waited_for_as_well(house: Installation) -> None:
    await house.start(*shop.ALL)
    id: Any = str(await house.client.start("shop.charge", {"order": 1}))
    assert await house.client.result(id, timeout=20) == {"order": 1, "charged": 0}
