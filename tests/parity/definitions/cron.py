"""The actions that the schedules of the rows about cron start."""

from __future__ import annotations

import asyncio
from typing import Any

from penstock import action, current


@action(pack="cron")
async def tell(day: str = "") -> dict[str, Any]:
    return {"day": day, **current().context}


@action(pack="cron")
async def work(seconds: float) -> None:
    await asyncio.sleep(seconds)


@action(pack="cron")
async def second_try() -> int:
    if current().attempt < 2:
        raise ConnectionError("as told")
    return current().attempt
