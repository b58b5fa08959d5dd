"""The actions that the schedules of `bench.schedules` start."""

from __future__ import annotations

from penstock import action


@action(pack="ticking")
async def tick(number: int) -> int:
    return number
