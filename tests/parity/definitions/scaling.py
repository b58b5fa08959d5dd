"""Actions and routes of the rows about several workers."""

from __future__ import annotations

import asyncio
import os

from penstock import Route, action

Route("*::ml::*", "gpu")
Route("scaling::heavy_*", "big")


@action(pack="ml")
async def train(n: int) -> int:
    return n


@action(pack="scaling")
async def heavy_sum(n: int) -> int:
    return n


@action(pack="scaling", labels={"zone": "eu"})
async def in_europe() -> str:
    return os.environ.get("PENSTOCK_LABELS", "")


@action(pack="scaling", max_recoveries=0)
async def fragile() -> None:
    await asyncio.sleep(120)


@action(pack="scaling", on_worker_loss="fail")
async def once() -> None:
    await asyncio.sleep(120)
