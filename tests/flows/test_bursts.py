"""Bursts of events in a whole installation: one execution each, with the payload that the rule keeps."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from penstock import Rule, Trigger, action
from penstock.client import rule_errors
from penstock.operate import event_rules
from tests.flows.installation import Installation

pytestmark = pytest.mark.either_transport

edited = Trigger("docs.edited", schema={"doc": "string", "n": "integer"})


@action(pack="docs")
async def index(doc: str, n: int) -> None: ...


@action(pack="docs")
async def total(numbers: list[int]) -> int:
    return sum(numbers)


PARAMS = {"doc": "{{ payload.doc }}", "n": "{{ payload.n }}"}
STARTED = """
select p.params::text as params from execution e join payload p on p.execution_id = e.id order by p.params::text
"""
CLOSED = "select 1 where not exists (select from burst_key) and not exists (select from unmatched)"


def rule(**options: Any) -> Rule:
    return Rule(
        "docs.on_edit", trigger=edited, **{"action": index, "params": PARAMS, "debounce": "2s", **options}
    )


async def publish(house: Installation, doc: str, *numbers: int) -> list[Any]:
    return [await house.client.publish("docs.edited", {"doc": doc, "n": n}) for n in numbers]


async def started(house: Installation) -> list[Any]:
    await house.until(CLOSED)
    await house.quiet()
    return [orjson.loads(row["params"]) for row in await house.rows(STARTED)]


async def test_burst_of_a_key_starts_once_with_its_last_event(house: Installation) -> None:
    await house.start(edited, index, rule(by="payload.doc", debounce="4s"))
    await house.executor()
    await asyncio.gather(publish(house, "a", *range(20)), publish(house, "b", *range(10)))
    assert await started(house) == [{"doc": "a", "n": 19}, {"doc": "b", "n": 9}]
    await house.sound()


async def test_bursts_are_grouped_by_a_label_of_the_rule(house: Installation) -> None:
    labels = {"order.team": "{{ payload.doc[0] if payload.doc else none }}"}
    await house.start(edited, index, rule(by="labels.order.team", labels=labels, debounce="4s"))
    for doc in ("a1", "b1", "", "a2", "b2", ""):
        await publish(house, doc, 1)
    expected = [{"doc": doc, "n": 1} for doc in ("", "a2", "b2")]  # a label without a value is one value
    assert await started(house) == expected
    await house.sound()


async def test_event_whose_parameters_fail_joins_the_burst_of_its_label(house: Installation) -> None:
    labels, params = {"doc": "{{ payload.doc }}"}, {**PARAMS, "n": "{{ 10 // payload.n }}"}
    await house.start(edited, index, rule(by=["labels.doc"], labels=labels, params=params, debounce="4s"))
    await publish(house, "a", 0, 2)
    await publish(house, "b", 0)
    await house.until(CLOSED)
    await house.quiet()
    rows = await house.rows("select error is null as worked from enforcement order by 1")
    assert [row["worked"] for row in rows] == [False, True]
    assert await started(house) == [{"doc": "a", "n": 5}]


async def test_first_event_is_kept_where_the_rule_says_so(house: Installation) -> None:
    await house.start(edited, index, rule(keep="first"))
    await publish(house, "a", 1, 2, 3)
    assert await started(house) == [{"doc": "a", "n": 1}]
    await house.sound()


async def test_all_payloads_are_kept_as_a_list(house: Installation) -> None:
    await house.start(
        edited,
        total,
        rule(keep="all", action=total, params={"numbers": "{{ payloads | map(attribute='n') | list }}"}),
    )
    await publish(house, "a", 1, 2, 3)
    assert await started(house) == [{"numbers": [1, 2, 3]}]
    await house.sound()


async def test_tenants_have_bursts_of_their_own(house: Installation) -> None:
    await house.start(edited, index, rule())
    await house.client.publish("docs.edited", {"doc": "a", "n": 1}, tenant="acme")
    await house.client.publish("docs.edited", {"doc": "a", "n": 2}, tenant="globex")
    assert len(await started(house)) == 2
    await house.sound()


async def test_show_says_which_burst_an_event_went_into(house: Installation) -> None:
    await house.apply(edited, index, rule(debounce="2s"))
    await house.executor()
    first, last = await publish(house, "a", 1, 2)
    await house.until("select 1 from burst_event having count(*) = 2")
    [open_verdict] = await event_rules.tried(house.session, first)
    assert "the rule has collected 2 events in a burst. The burst closes at" in open_verdict["why"]
    assert open_verdict["verdict"] == "waiting"
    await house.worker(index)
    await started(house)
    [row] = await house.rows("select id from execution")
    for event, kept in ((first, f"event {last}"), (last, "this event")):
        [verdict] = await event_rules.tried(house.session, event)
        assert verdict["why"].startswith("the event is part of a burst of 2 events, which closed at")
        assert verdict["why"].endswith(
            f"The rule started one execution for the whole burst, with the parameters of {kept}"
        )
        assert verdict["execution"] == row["id"]


async def test_backlog_of_events_does_not_divide_a_burst(house: Installation) -> None:
    """Events that were published while no executor ran are split by their own times."""
    await house.apply(edited, index, rule(by="payload.doc"))
    await publish(house, "a", *range(5))
    await asyncio.sleep(3)
    await publish(house, "a", *range(5, 9))
    await asyncio.sleep(3)
    await house.executor()
    await house.executor()
    await house.worker(index)
    assert await started(house) == [{"doc": "a", "n": 4}, {"doc": "a", "n": 8}]
    await house.sound()


async def test_rule_that_failed_on_a_burst_runs_again_with_all_payloads(house: Installation) -> None:
    options: dict[str, Any] = {"keep": "all", "action": total}
    await house.start(edited, total, rule(params={"numbers": "{{ payloads[9].n }}"}, **options))
    await publish(house, "a", 1, 2, 3)
    await house.until("select 1 from enforcement where error is not null")
    await house.apply(
        edited, total, rule(params={"numbers": "{{ payloads | map(attribute='n') | list }}"}, **options)
    )
    assert [r.what async for r in rule_errors.rerun(house.client)] == ["started"]
    assert await started(house) == [{"numbers": [1, 2, 3]}]
    await house.sound()
