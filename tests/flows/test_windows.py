"""Windows of events in a whole installation: one execution for each match, and what is shown of the events."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from penstock import Rule, Trigger, Window, action
from penstock.client import rule_errors
from penstock.operate import event_rules
from penstock.operate.definitions import enable_rule
from tests.flows.installation import Installation

pytestmark = pytest.mark.either_transport

placed = Trigger("shop.placed", schema={"order": "integer"})
paid = Trigger("shop.paid", schema={"order": "integer", "amount": "integer"})


@action(pack="shop")
async def note(order: int, amounts: list[int]) -> None: ...


STARTED = "select p.params::text as params from execution e join payload p on p.execution_id = e.id order by p.params::text"
ENDED = "select 1 where not exists (select from burst_key) and not exists (select from unmatched)"
AMOUNTS = "{{ events[1:] | map(attribute='payload.amount') | list }}"


def rule(*, params: dict[str, Any] | None = None, **window: Any) -> Rule:
    return Rule(
        "shop.watch",
        action=note,
        params=params or {"order": "{{ events[0].payload.order }}", "amounts": AMOUNTS},
        window=Window(**{"by": "payload.order", **window}),
    )


async def publish(house: Installation, *bodies: dict[str, Any]) -> list[Any]:
    """Publish orders, and payments of those with an amount."""
    return [
        await house.client.publish("shop.paid" if "amount" in body else "shop.placed", body)
        for body in bodies
    ]


async def started(house: Installation) -> list[Any]:
    await house.until(ENDED)
    await house.quiet()
    return [orjson.loads(row["params"]) for row in await house.rows(STARTED)]


async def test_sequence_starts_once_for_each_key(house: Installation) -> None:
    await house.start(placed, paid, note, rule(sequence=[placed, paid], within="1m"))
    await house.executor()
    await publish(house, {"order": 1}, {"order": 2}, {"order": 2, "amount": 20}, {"order": 1, "amount": 10})
    await house.until("select 1 from execution having count(*) = 2")
    assert await started(house) == [{"order": 1, "amounts": [10]}, {"order": 2, "amounts": [20]}]
    await house.sound()


async def test_absence_starts_when_the_window_has_ended(house: Installation) -> None:
    await house.start(placed, paid, note, rule(absence=[placed, paid], within="700ms"))
    await house.executor()
    await publish(house, {"order": 1}, {"order": 2}, {"order": 2, "amount": 20})
    assert await started(house) == [{"order": 1, "amounts": []}]
    await house.sound()


async def test_count_starts_at_the_threshold(house: Installation) -> None:
    await house.start(paid, note, rule(count=[paid], at_least=3, within="1m"))
    await publish(house, *({"order": 1, "amount": n} for n in range(7)))
    await house.until("select 1 from execution having count(*) = 2")
    [open_event] = await house.rows("select event_id from burst_event where burst is null")
    [verdict] = await event_rules.tried(house.session, open_event["event_id"])
    beginning = "the rule waits for 2 more events of shop.paid until "
    assert verdict["why"].startswith(beginning)
    assert verdict["why"].endswith(" UTC. So far, the rule has 1 of the 3 events that it needs")
    assert verdict["verdict"] == "waiting"
    await house.sound()


async def test_show_tells_the_outcome_of_an_event(house: Installation) -> None:
    await house.start(placed, paid, note, rule(sequence=[placed, paid], within="700ms"))
    first, second, lonely = await publish(house, {"order": 1}, {"order": 1, "amount": 5}, {"order": 2})
    assert await started(house) == [{"order": 1, "amounts": [5]}]
    [execution] = await house.rows("select id from execution")
    for event, source in ((first, f"event {second}"), (second, "this event")):
        [verdict] = await event_rules.tried(house.session, event)
        assert verdict["why"].startswith("the event is part of a match of 2 events, which closed at")
        assert verdict["why"].endswith(
            f"The rule started one execution for the whole match, with the parameters of {source}"
        )
        assert verdict["execution"] == execution["id"]
    [verdict] = await event_rules.tried(house.session, lonely)
    assert verdict["verdict"] == "no match"
    assert verdict["why"].startswith("the event started nothing: the rule needs further events within its ")


async def test_disabled_rule_drops_its_open_windows(house: Installation) -> None:
    """While the rule is disabled it does not see the payment, so the absence must not match."""
    await house.start(placed, paid, note, rule(absence=[placed, paid], within="1s"))
    await publish(house, {"order": 1})
    await house.until("select 1 from burst_event")
    await enable_rule(house.session, "shop.watch", False)
    await publish(house, {"order": 1, "amount": 1})
    await house.until("select 1 where not exists (select from unmatched)")
    await enable_rule(house.session, "shop.watch", True)
    await publish(house, {"order": 2})
    assert await started(house) == [{"order": 2, "amounts": []}]
    assert await house.rows("select 1 from burst_event where dropped = 'changed'")


async def test_changed_window_drops_its_open_windows(house: Installation) -> None:
    await house.start(placed, paid, note, rule(sequence=[placed, paid], within="2s"))
    await publish(house, {"order": 1})
    await house.until("select 1 from burst_event")
    await house.apply(placed, paid, note, rule(sequence=[placed, paid], within="3s"))
    await publish(house, {"order": 1, "amount": 1}, {"order": 2}, {"order": 2, "amount": 2})
    assert await started(house) == [{"order": 2, "amounts": [2]}]


async def test_version_with_the_same_window_gives_the_parameters(house: Installation) -> None:
    window: dict[str, Any] = {"sequence": [placed, paid], "within": "1m"}
    await house.start(placed, paid, note, rule(**window))
    await publish(house, {"order": 1})
    await house.until("select 1 from burst_event")
    await house.apply(placed, paid, note, rule(**window, params={"order": 9, "amounts": AMOUNTS}))
    await publish(house, {"order": 1, "amount": 1})
    await house.until("select 1 from execution")
    assert await started(house) == [{"order": 9, "amounts": [1]}]


async def test_rule_that_failed_on_a_match_runs_again_with_its_events(house: Installation) -> None:
    window: dict[str, Any] = {
        "sequence": [{"trigger": placed, "name": "order"}, {"trigger": paid, "name": "payment"}],
        "within": "1m",
    }
    await house.start(
        placed, paid, note, rule(**window, params={"order": "{{ events[9].id }}", "amounts": []})
    )
    await publish(house, {"order": 1}, {"order": 1, "amount": 7})
    await house.until("select 1 from enforcement where error is not null")
    by_name = {"order": "{{ parts.order.payload.order }}", "amounts": ["{{ parts.payment.payload.amount }}"]}
    await house.apply(placed, paid, note, rule(**window, params=by_name))
    assert [r.what async for r in rule_errors.rerun(house.client)] == ["started"]
    assert await started(house) == [{"order": 1, "amounts": [7]}]
    await house.sound()


async def test_event_without_its_timestamp_is_an_error_of_the_rule(house: Installation) -> None:
    await house.start(
        placed, paid, note, rule(sequence=[placed, paid], within="1m", timestamp="payload.at", lateness="1m")
    )
    await publish(house, {"order": 1})
    await house.until("select 1 from enforcement where error is not null")
    [error] = await rule_errors.newest(house.session)
    assert error.error.startswith("InvalidInput: payload.at is missing")
    assert [r.what async for r in rule_errors.rerun(house.client)] == ["failed"]


async def test_system_events_are_raised_for_a_window(house: Installation) -> None:
    @action(pack="shop", retry=1)
    async def fail() -> None:
        raise ValueError("no")

    alarm = Rule(
        "shop.alarm",
        action=note,
        params={"order": "{{ events | length }}", "amounts": []},
        window=Window(count=["penstock.execution.failed"], at_least=2, within="1m", by="payload.action"),
    )
    await house.start(fail, note, alarm)
    await asyncio.gather(*(house.client.start(fail) for _ in range(2)))
    await house.until(
        "select 1 from execution e join payload p on p.execution_id = e.id where p.params ? 'amounts'"
    )
    await house.sound()
