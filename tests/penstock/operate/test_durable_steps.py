"""The steps of a durable function for display: deadlines that passed are not failures, and each wait is a step."""

from __future__ import annotations

import asyncio

import pytest

from penstock import DurableContext, RetryPolicy, Trigger, action
from penstock.operate.durable_steps import TIMED_OUT, status_for_people, steps_of
from penstock.store.executions import executions
from tests.flows.installation import Installation
from tests.penstock.operate import deadlines

pytestmark = pytest.mark.either_transport


async def test_passed_deadlines_are_timeouts_and_the_rest_fails(house: Installation) -> None:
    await house.start(*deadlines.ALL)
    id = await house.client.start("deadlines.waits")
    assert await house.client.result(id, timeout=30) == "over"
    await house.quiet()
    for archived in (False, True):
        steps = {step.label: step for step in await steps_of(house.session, id)}
        assert {label: step.status for label, step in steps.items()} == deadlines.STATUSES, archived
        shown = {label for label, step in steps.items() if status_for_people(step) == TIMED_OUT}
        assert shown == deadlines.PLANNED
        await house.rows("select * from archive_finished(interval '0', 100)")
    assert not await house.rows("select 1 from execution")


ORDERS = Trigger("waits.paid", schema={"order": "integer"})


@action(pack="waits", route="nowhere")
async def never() -> None: ...


async def breaks() -> None:
    raise ValueError("away")


async def takes_two_signals(ctx: DurableContext) -> None:
    await ctx.signal("early", timeout="1d")
    await ctx.signal("late", timeout="2d")


@action(pack="waits")
async def waits(ctx: DurableContext) -> None:
    await ctx.signal("go", timeout="1h")
    slow = RetryPolicy(max_attempts=2, initial_delay=3600, max_delay=3600, jitter=0)
    await asyncio.gather(
        ctx.signal("paid"),
        takes_two_signals(ctx),
        ctx.wait_for(ORDERS, when="event.payload.order == order", order=42, timeout="1h"),
        ctx.ask("Ship it?", assignee="ada", timeout="1h"),
        ctx.run(never),
        ctx.sleep("1h"),
        ctx.step("breaks", breaks, retry=slow),
    )


AWAITED = {
    "paid": ("waiting", "the signal paid", False),
    "early": ("waiting", "the signal early", True),
    "2/timeout of early": ("waiting", "the signal early, or this deadline", True),
    "wait_for": ("waiting", "an event of waits.paid where order = 42", True),
    "ask": ("waiting", "an answer from ada: Ship it?", True),
    "never": ("scheduled", "the end of its child execution", False),
    "sleep": ("waiting", "the end of the sleep", True),
    "breaks": ("waiting", "its attempt 2", True),
}
"""By the step in which the function waits: its status for people, what ends the wait, and whether the wait has a last instant."""


async def test_function_has_a_step_for_all_that_it_waits_for(house: Installation) -> None:
    await house.start(ORDERS, waits, never)
    id = await house.client.start("waits.waits")
    await house.until("select 1 from suspended where execution_id = $1", id)
    [step] = [step for step in await steps_of(house.session, id) if step.label == "go"]
    assert (step.kind, status_for_people(step)) == ("signal", "waiting")
    await house.client.signal(id, "go", 1)
    await house.until(
        "select 1 from suspended where execution_id = $1 and jsonb_array_length(signals) = 2", id
    )
    await house.until("select 1 from event_wait e join inquiry i on i.status = 'created'")
    await house.until("select 1 from execution where parent = $1 and status = 'scheduled'", id)
    found = {step.label: step for step in await steps_of(house.session, id)}
    assert {
        label: (status_for_people(step), step.wait.awaits, step.wait.until is not None)
        for label, step in found.items()
        if step.wait is not None
    } == AWAITED
    # The deadline of a signal that has come is not awaited any more.
    assert (found["timeout of go"].status, found["go"].status) == ("cancelled", "completed")
    begun = (await executions.get(house.session, id)).created_at
    assert all(step.wait.since >= begun for step in found.values() if step.wait is not None)
    for name in ("paid", "early"):
        await house.client.signal(id, name, None)
    await house.until(
        "select 1 from suspended where execution_id = $1 and signals -> 0 ->> 0 = 'signal/late'", id
    )
    found = {step.label: step for step in await steps_of(house.session, id)}
    assert found["late"].wait is not None
    assert found["2/timeout of early"].wait is None
    await house.client.cancel(id, reason="the test is over")
    await house.until("select 1 from execution where id = $1 and finished_at is not null", id)
    assert not any(step.wait for step in await steps_of(house.session, id))
