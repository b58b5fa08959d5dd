"""Executions that keep their slots during a wait (`while_waiting: keep`) go on in them, with the rights of the services."""

from __future__ import annotations

from typing import Any

import pytest

from penstock import AskInquiry, DurableContext, Later, Limit, action, current, later
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


@action(pack="kept")
async def builds(number: int) -> Later:
    return later(f"kept:build:{number}", timeout="1h")


ALL = (sleeps, listens, asks, builds, DOOR)
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


async def test_work_elsewhere_keeps_its_slot_until_its_end_is_told(house: Installation) -> None:
    await house.start(*ALL)
    first = await house.client.start("kept.builds", {"number": 1})
    await house.until(HELD, first)
    second = await house.client.start("kept.builds", {"number": 2})
    await house.until("select from execution where id = $1 and status = 'queued'", second)
    await house.client.complete(first, result="built", by="ada")
    assert await house.client.result(first, timeout=20) == "built"
    await house.until(HELD, second)
    await house.client.complete(second, result="built, too", by="ada")
    assert await house.client.result(second, timeout=20) == "built, too"
    await house.quiet()
    await house.sound()
