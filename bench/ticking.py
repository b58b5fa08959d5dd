"""What the schedules of `bench.schedules` run."""

from __future__ import annotations

from penstock import action


@action(pack="ticking")
async def tick(number: int) -> int:
    return number
