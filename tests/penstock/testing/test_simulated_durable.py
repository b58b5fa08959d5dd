"""Durable functions in a simulation: its clock, its children, its signals."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from penstock import DurableContext, Trigger, action
from penstock.errors import Conflict, StepFailed, StepTimedOut
from penstock.testing import Simulation

paid = Trigger("simdur.paid")
UNDONE: list[str] = []


@action(pack="simdur", retry={"max_attempts": 2, "initial_delay": "50s", "jitter": 0})
async def price(n: int) -> int:
    return 2 * n


@action(pack="simdur")
async def long(ctx: DurableContext, n: int) -> list[Any]:
    began = ctx.now()
    ctx.on_failure(UNDONE.append, "long")
    await ctx.sleep("3d")
    one = await ctx.run(price, n=n)
    many = await ctx.map(price, [{"n": i} for i in range(3)], concurrency=2, name="many")
    return [(ctx.now() - began).days, one, many]


@action(pack="simdur")
async def waits(ctx: DurableContext) -> list[Any]:
    with suppress(StepTimedOut):
        await ctx.signal("go", timeout="1d")
    told = await ctx.signal("go")
    answer = await ctx.ask("Now?", name="approve")
    event = await ctx.wait_for(paid, when="event.payload.order == id", id=7)
    return [told, answer, event["payload"]]


@action(pack="simdur", retry={"max_attempts": 3, "initial_delay": "40s", "jitter": 0})
async def flaky(ctx: DurableContext) -> Any:
    UNDONE.append("called")
    return await ctx.step("try", fail_once)


async def fail_once() -> str:
    if UNDONE.count("called") < 2:
        raise OSError("away")
    return "there"


@action(pack="simdur")
async def outer(ctx: DurableContext) -> Any:
    try:
        return await ctx.run(price, n=1)
    except StepFailed as error:
        return error.type


@action(pack="simdur")
async def waits_for_nothing(ctx: DurableContext) -> Any:
    return await ctx.wait_for("simdur.piad")


@pytest.fixture
def simulation() -> Simulation:
    UNDONE.clear()
    return Simulation(long)


def test_sleep_moves_clock_of_simulation(simulation: Simulation) -> None:
    before = simulation.now
    run = simulation.run(long, n=4)
    assert run.result == [3, 8, [0, 2, 4]]
    assert (simulation.now - before).days == 3
    assert run.ran == ["long", "long.price", *["long.many"] * 3]


def test_failed_child_is_retried_on_same_clock(simulation: Simulation) -> None:
    simulation.fake(price, raises=OSError("away"), times=1)
    before = simulation.now
    assert simulation.run(outer).result == 2
    assert (simulation.now - before).total_seconds() == 50


def test_child_that_fails_for_good_fails_its_step(simulation: Simulation) -> None:
    simulation.fake(price, raises=OSError("away"))
    assert simulation.run(outer).result == "OSError"


def test_signals_answers_and_events_reach_function(simulation: Simulation) -> None:
    run = simulation.start(waits)
    simulation.advance("2d")
    assert run.status == "waiting"
    run.signal("go", 5)
    assert run.waits_for == ["waits.approve"]
    run.answer("waits.approve", True)
    simulation.publish(paid, {"order": 6})
    assert run.status == "waiting"
    simulation.publish(paid, {"order": 7})
    assert run.result == [5, True, {"order": 7}]


def test_failed_attempt_is_tried_again_after_its_delay(simulation: Simulation) -> None:
    before = simulation.now
    run = simulation.run(flaky)
    assert run.result == "there"
    assert [step.status for step in run.attempts("flaky")] == ["failed", "completed"]
    assert (simulation.now - before).total_seconds() == 40


def test_cancelled_function_is_undone(simulation: Simulation) -> None:
    run = simulation.start(long, n=1)
    simulation.advance("1d")
    run.cancel()
    assert (run.status, UNDONE) == ("cancelled", ["long"])


def test_signal_to_plain_action_is_refused(simulation: Simulation) -> None:
    with pytest.raises(Conflict, match="not a durable function"):
        simulation.run(price, n=1).signal("go")


def test_wait_for_unknown_trigger_is_refused(simulation: Simulation) -> None:
    run = simulation.run(waits_for_nothing)
    assert run.status == "failed"
    assert "knows no trigger 'simdur.piad'" in str(run.error)
