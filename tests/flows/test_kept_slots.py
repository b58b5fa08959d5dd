"""Executions that keep their slots during a wait (`while_waiting: keep`) go on in them, with the rights of the services."""

from __future__ import annotations

from typing import Any

import pytest

from penstock import AskInquiry, DurableContext, Limit, action, current
from tests.flows.installation import Installation

pytestmark = pytest.mark.either_transport

DOOR = Limit(1, ref="kept.door", scope="kept", while_waiting="keep")


@action(pack="kept")
async def sleeps(ctx: DurableContext) -> str:
    await ctx.sleep(2)
    return "awake"


@action(pack="kept")
async def listens(ctx: DurableContext) -> Any:
    return await ctx.signal("go")


@action(pack="kept")
async def asks() -> Any:
    if not current().answers:
        raise AskInquiry("Ready?", schema={"type": "boolean"}, resume=True)
    return list(current().answers)


ALL = (sleeps, listens, asks, DOOR)
HELD = "select from slot s join execution e on e.id = s.execution_id where e.id = $1 and e.status = 'waiting'"


async def test_function_goes_on_in_the_slot_that_it_kept(house: Installation) -> None:
    await house.start(*ALL, suspend_after=0.0)
    slept = await house.client.start("kept.sleeps")
    await house.until(HELD, slept)
    assert await house.client.result(slept, timeout=20) == "awake"
    await house.quiet()
    told = await house.client.start("kept.listens")
    await house.until(HELD, told)
    await house.client.signal(told, "go", 7)
    assert await house.client.result(told, timeout=20) == 7
    await house.quiet()
    await house.sound()


async def test_action_that_asked_goes_on_in_the_slot_that_it_kept(house: Installation) -> None:
    await house.start(*ALL)
    id = await house.client.start("kept.asks")
    await house.until(HELD, id)
    await house.client.answer(id, True, by="ada")
    assert await house.client.result(id, timeout=20) == [True]
    await house.quiet()
    await house.sound()
