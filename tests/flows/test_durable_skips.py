"""The skips of awaited values of durable functions by people."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from penstock import DurableContext, action
from penstock.errors import Conflict
from tests.flows.installation import Installation

pytestmark = pytest.mark.either_transport


@action(pack="dur")
async def patient(ctx: DurableContext) -> Any:
    await ctx.sleep("1d")
    return await ctx.signal("word", timeout="1d")


@action(pack="dur")
async def told(ctx: DurableContext, count: int = 1, timeout: str | None = None) -> Any:
    if count == 0:
        await ctx.sleep("1d")
    return [await ctx.signal("go", timeout=timeout) for _ in range(max(count, 1))]


async def is_suspended(house: Installation, id: UUID, ordinal: int = 1) -> None:
    await house.until(
        "select 1 from suspended where execution_id = $1 and signals @> $2::text::jsonb",
        id,
        f'[["signal/go", {ordinal}]]',
    )


async def test_awaited_signal_is_skipped_or_given(house: Installation) -> None:
    await house.start(told)
    command, signal = house.client.command, house.client.signal
    skipped = await house.client.start("dur.told")
    await is_suspended(house, skipped)
    await command(skipped, "skip", task="go", by="ada")
    assert await house.client.result(skipped, timeout=20) == [None]
    timed = await house.client.start("dur.told", {"timeout": "1d"})
    await is_suspended(house, timed)
    await command(timed, "set_result", task="go", value={"by": "hand"}, by="ada")
    assert await house.client.result(timed, timeout=20) == [{"by": "hand"}]
    several = await house.client.start("dur.told", {"count": 3})
    await is_suspended(house, several)
    await command(several, "set_result", task="go:2", value="second", by="ada")  # waits for the first
    await signal(several, "go", "first")
    await is_suspended(house, several, 3)
    with pytest.raises(Conflict, match="the step go is over"):
        await command(several, "skip", task="go", by="ada")
    await signal(several, "go", "third")
    assert await house.client.result(several, timeout=20) == ["first", "second", "third"]
    await house.quiet()
    await house.sound()


async def test_signal_is_given_before_it_is_awaited(house: Installation) -> None:
    await house.start(told)
    id = await house.client.start("dur.told", {"count": 0})
    await house.until("select 1 from suspended where execution_id = $1", id)
    await house.client.command(id, "set_result", task="go", value="early", by="ada")
    await house.until("select 1 from suspended where execution_id = $1", id)  # the command woke it
    await house.client.command(id, "skip", task="sleep", by="ada")
    assert await house.client.result(id, timeout=20) == ["early"]
    await house.sound()


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
