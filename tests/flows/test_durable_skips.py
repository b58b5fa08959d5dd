"""The skips of awaited values of durable functions by people."""

from __future__ import annotations

from typing import Any

import pytest

from penstock import DurableContext, action
from tests.flows.installation import Installation

pytestmark = pytest.mark.either_transport


@action(pack="dur")
async def patient(ctx: DurableContext) -> Any:
    await ctx.sleep("1d")
    return await ctx.signal("word", timeout="1d")


async def test_a_sleep_and_a_deadline_are_skipped(house: Installation) -> None:
    await house.start(patient)
    id = await house.client.start("dur.patient")
    for step in ("sleep", "timeout of word"):
        await house.until("select 1 from suspended where execution_id = $1", id)
        await house.until("select 1 from step where name = $1", step)
        await house.client.command(id, "skip", task=step, by="ada")
    await house.until("select 1 from suspended where until is null")
    await house.client.signal(id, "word", "go")
    assert await house.client.result(id, timeout=20) == "go"
    await house.quiet()
    await house.sound()
