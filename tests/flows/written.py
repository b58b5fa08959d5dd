"""Actions for workflows that show what the options of a task do, and a way to run one that is written in a test."""

from __future__ import annotations

import asyncio
from typing import Any

from penstock import RetryPolicy, action, current
from penstock.language.workflows import from_yaml
from tests.flows.installation import Installation


@action(pack="op")
async def echo(value: Any = None) -> Any:
    return value


@action(pack="op")
async def odd(n: int) -> int:
    if n % 2 == 0:
        raise ValueError(f"{n} is even")
    return n


@action(pack="op")
async def nap(seconds: float = 60) -> str:
    await asyncio.sleep(seconds)
    return "rested"


@action(pack="op", retry=RetryPolicy(max_attempts=1))
async def third_time() -> int:
    if current().attempt < 3:
        raise OSError("not yet")
    return current().attempt


ACTIONS = (echo, odd, nap, third_time)


async def run(house: Installation, text: str, params: dict[str, Any] | None = None) -> Any:
    """The result of a workflow written here. Raises ExecutionFailed."""
    workflow = from_yaml(text)
    await house.start(*ACTIONS, workflow)
    try:
        return await house.client.run(workflow.ref, params, timeout=30)
    finally:
        await house.until("select 1 where not exists (select from execution where finished_at is null)")
        await house.sound()
