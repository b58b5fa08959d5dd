"""Chains of events and rules in a whole installation: storms are cut at exactly their bound, with one letter."""

from __future__ import annotations

import asyncio

import pytest

from penstock import Rule, Trigger, action, current
from penstock.client import rule_errors
from penstock.errors import InvalidInput
from tests.flows.installation import Installation

pytestmark = pytest.mark.either_transport

again = Trigger("storm.again", schema={"n": "integer"})
echo = Trigger("storm.echo", schema={"n": "integer"})


@action(pack="storm")
async def spread(n: int) -> int:
    for _ in range(2):
        await current().publish("storm.again", {"n": n + 1})
    return n


@action(pack="storm")
async def pass_on(n: int) -> int:
    await current().publish("storm.echo", {"n": n + 1})
    return n


@action(pack="storm")
async def turn_back(n: int) -> int:
    await current().publish("storm.again", {"n": n + 1}, transactional=True)
    return n


PARAMS = {"n": "{{ payload.n }}"}
LETTERS = "select reason, count from dead_letter"
STARTED = "select count(*) from execution e join payload p on p.execution_id = e.id where p.origin ? 'rule'"
CUT = "select error from enforcement where error like 'ChainCut%'"


async def started(house: Installation) -> int:
    [row] = await house.rows(STARTED)
    return int(row["count"])


async def settled(house: Installation) -> None:
    await house.until(
        "select 1 where not exists (select from unmatched) and not exists (select from outbox) "
        "and not exists (select from execution where finished_at is null) and not exists (select from untold)",
        seconds=60,
    )
    await house.quiet()


async def test_rule_bounds_a_storm_that_two_executors_match(house: Installation) -> None:
    storm = Rule("storm.loop", trigger=again, action=spread, params=PARAMS, max_descendants=25)
    await house.start(again, spread, storm)
    await house.executor()
    await house.client.publish("storm.again", {"n": 0})
    await settled(house)
    assert await started(house) == 25
    [letter] = await house.rows(LETTERS)
    assert "max_descendants=25 of the rule storm.loop" in letter["reason"]
    assert "The circle: storm.loop -> storm.again -> storm.loop." in letter["reason"]
    assert letter["count"] == 1
    assert len(await house.rows(CUT)) == 26  # 25 executions published 50 events, of which 24 started one
    await house.sound()


async def test_each_execution_outside_a_chain_begins_its_own(house: Installation) -> None:
    storm = Rule("storm.loop", trigger=again, action=spread, params=PARAMS, max_descendants=6)
    await house.start(again, spread, storm)
    await asyncio.gather(*(house.client.publish("storm.again", {"n": 0}) for _ in range(4)))
    await settled(house)
    assert await started(house) == 24
    assert len(await house.rows(LETTERS)) == 4
    await house.sound()


async def test_event_bounds_the_depth_of_a_circle_of_two_rules(house: Installation) -> None:
    there = Rule("storm.there", trigger=again, action=pass_on, params=PARAMS)
    back = Rule("storm.back", trigger=echo, action=turn_back, params=PARAMS)
    await house.start(again, echo, pass_on, turn_back, there, back)
    await house.client.publish("storm.again", {"n": 0}, max_depth=7)
    await settled(house)
    assert await started(house) == 7
    [letter] = await house.rows(LETTERS)
    assert "max_depth=7 of the event or start" in letter["reason"]
    assert (
        "The circle: storm.back -> storm.again -> storm.there -> storm.echo -> storm.back."
        in letter["reason"]
    )
    await house.sound()


async def test_start_bounds_the_executions_of_later_rules(house: Installation) -> None:
    storm = Rule("storm.loop", trigger=again, action=spread, params=PARAMS)
    await house.start(again, spread, storm)
    await house.client.start(spread, {"n": 0}, max_descendants=5, max_depth=50)
    await settled(house)
    assert await started(house) == 5
    assert len(await house.rows(LETTERS)) == 1
    await house.sound()


async def test_raised_bound_and_rerun_go_on(house: Installation) -> None:
    def storm(bound: int) -> Rule:
        return Rule("storm.loop", trigger=again, action=spread, params=PARAMS, max_descendants=bound)

    await house.start(again, spread, storm(3))
    await house.client.publish("storm.again", {"n": 0})
    await settled(house)
    assert [r.what async for r in rule_errors.rerun(house.client)] == ["failed"] * 4
    await house.apply(again, spread, storm(5))
    outcomes = [r.what async for r in rule_errors.rerun(house.client)]
    assert sorted(outcomes) == ["failed", "failed", "started", "started"]
    await settled(house)
    assert await started(house) == 5
    assert len(await house.rows(LETTERS)) == 1
    await house.sound()


async def test_bounds_are_whole_numbers_from_one_on(house: Installation) -> None:
    await house.apply(again)
    for wrong in (0, -1, 2**31, True, 1.5):
        with pytest.raises(InvalidInput):
            await house.client.publish("storm.again", {"n": 0}, max_depth=wrong)  # type: ignore[arg-type]
