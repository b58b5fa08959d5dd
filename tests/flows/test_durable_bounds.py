"""Durable functions on real services: signals in time, names that Penstock makes, depth, and what people are shown."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from penstock import DurableContext, Trigger, action
from penstock.errors import ExecutionFailed, StepTimedOut
from penstock.language.workflows import from_body
from penstock.operate import why
from penstock.operate.durable_steps import steps_of
from penstock.store.upkeep import overview
from tests.flows.installation import Installation

pytestmark = pytest.mark.either_transport
CALLS: Counter[str] = Counter()
paid = Trigger("bound.paid")


@action(pack="bound")
async def double(n: int) -> int:
    return 2 * n


@action(pack="bound")
async def listens(ctx: DurableContext, rounds: int, seconds: float) -> Any:
    await ctx.step("wait", asyncio.sleep, seconds)
    for _ in range(rounds):
        try:
            return await ctx.signal("word", timeout=0.5)
        except StepTimedOut:
            continue
    return "nothing"


@action(pack="bound")
async def polls(ctx: DurableContext) -> Any:
    await ctx.step("wait", asyncio.sleep, 1.0)
    return await ctx.signal("word", timeout=0)


@action(pack="bound")
async def maps(ctx: DurableContext) -> Any:
    return await ctx.map(double, [{"n": 1}, {"n": 2}])


@action(pack="bound")
async def itself(ctx: DurableContext, n: int) -> Any:
    CALLS["itself"] += 1
    return await ctx.run("bound.itself", n=n + 1)


@action(pack="bound")
async def races(ctx: DurableContext) -> Any:
    name, value = await ctx.first(paid=ctx.signal("paid"), answer=ctx.ask("Well?"), event=ctx.wait_for(paid))
    await ctx.sleep(0.2)
    return [name, value]


@action(pack="bound")
async def waits(ctx: DurableContext) -> Any:
    return await ctx.wait_for(paid, when="event.payload.order == order", order=7, timeout=600)


async def test_a_loop_of_short_waits_hears_a_signal(house: Installation) -> None:
    await house.start(listens, suspend_after=1.0)
    id = await house.client.start("bound.listens", {"rounds": 20, "seconds": 0.0})
    await house.until(
        "select 1 from step where name = 'timeout of word' and ordinal = 2 and execution_id = $1", id
    )
    await house.client.signal(id, "word", "heard")
    assert await house.client.result(id, timeout=20) == "heard"
    await house.quiet()
    await house.sound()


async def test_a_signal_sent_during_a_step_is_taken(house: Installation) -> None:
    await house.start(polls)
    id = await house.client.start("bound.polls")
    await house.until("select 1 from execution where id = $1 and status = 'running'", id)
    await house.client.signal(id, "word", 7)
    assert await house.client.result(id, timeout=20) == 7


async def test_a_map_runs_no_workflow_of_a_similar_name(house: Installation) -> None:
    mine = from_body(
        {
            "ref": "bound.double_items",
            "tasks": [{"name": "other", "action": "bound.double", "input": {"n": 21}}],
        }
    )
    await house.start(maps, double, mine)
    assert await house.client.result(await house.client.start("bound.maps"), timeout=20) == [2, 4]


async def test_a_function_that_runs_itself_has_a_depth(house: Installation) -> None:
    CALLS.clear()
    await house.start(itself, max_workflow_depth=5)
    with pytest.raises(ExecutionFailed):
        await house.client.result(await house.client.start("bound.itself", {"n": 1}), timeout=30)
    assert CALLS["itself"] >= 5
    assert (await house.rows("select count(*) as n from execution"))[0]["n"] == 5


async def test_the_losers_of_a_race_are_cancelled(house: Installation) -> None:
    await house.start(races, paid)
    id = await house.client.start("bound.races")
    await house.until("select 1 from suspended")
    await house.client.signal(id, "paid", 7)
    assert await house.client.result(id, timeout=20) == ["paid", 7]
    children = await house.rows("select status from execution where parent = $1", id)
    assert [row["status"] for row in children] == ["cancelled", "cancelled"]
    statuses = {step.name: step.status for step in await steps_of(house.session, id)}
    assert (statuses["ask"], statuses["wait_for"]) == ("cancelled", "cancelled")
    await house.quiet()
    await house.sound()


async def test_why_names_the_event_that_is_awaited(house: Installation) -> None:
    await house.start(waits, paid)
    id = await house.client.start("bound.waits")
    await house.until("select 1 from suspended")
    await house.until("select 1 from event_wait")
    says = (await why.why(house.session, id, house.session.settings)).says
    assert "an event of bound.paid where order = 7." in says
    assert await house.rows("select 1 from attempt where execution_id = $1 and error is not null", id) == []
    standing = {group.cause: group.count for group in await overview.standing(house.session)}
    assert standing == {"event": 1, "workflow": 1}
    top_level = {group.cause: group.top_level for group in await overview.standing(house.session)}
    assert top_level == {"event": 0, "workflow": 1}
