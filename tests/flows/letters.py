"""The letters and messages that tests of dead letters and of unroutable messages look for."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from tests.flows.installation import Installation


async def scheduled(house: Installation, ref: str = "shop.charge", **params: Any) -> UUID:
    id = await house.client.start(ref, params or {"order": 7})
    await house.until("select 1 from execution where id = $1 and status = 'scheduled'", id)
    return id


async def letter(house: Installation, reason: str) -> dict[str, Any]:
    [row] = await house.until("select * from dead_letter where reason like $1", f"%{reason}%")
    return dict(row)
