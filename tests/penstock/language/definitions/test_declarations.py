"""Triggers, rules, routes, limits and schedules, one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from pydantic import BaseModel

from penstock import workflow
from penstock.errors import DefinitionError
from penstock.language.definitions import (
    Limit,
    MissedFires,
    Pack,
    Route,
    Rule,
    Schedule,
    Trigger,
    action,
    schedule,
    trigger,
)
from penstock.language.policies import RetryPolicy

pack = Pack("shop")


class Order(BaseModel):
    """An order."""

    id: str
    amount: int


@dataclass
class Small:
    id: str
    amount: int


@action
def charge(customer: str = "") -> None: ...


def refused(declare: Callable[[], object], message: str, hint: str = "") -> None:
    with pytest.raises(DefinitionError, match=r"test_declarations\.py:\d+: ") as raised:
        declare()
    assert message in str(raised.value)
    assert hint in str(raised.value.hint)


def test_a_payload_is_described_by_a_model_a_dataclass_or_a_schema_alike() -> None:
    schema = {
        "type": "object",
        "properties": {"id": {"type": "string"}, "amount": {"type": "integer"}},
        "required": ["id", "amount"],
    }
    short = {"id": {"type": "string", "required": True}, "amount": {"type": "integer", "required": True}}
    made = [Trigger("order_placed", schema=one) for one in (Small, schema, short)]
    assert len({one.document().digest for one in made}) == 1
    assert made[0].document().body == {
        "ref": "shop.order_placed",
        "schema": {**schema, "required": ["amount", "id"]},
    }
    assert Trigger("order_placed", schema=Order).document().body["schema"]["description"] == "An order."


def test_a_trigger_without_a_schema_takes_any_payload() -> None:
    assert Trigger("any.thing").document().body == {"ref": "any.thing"}


def test_wrong_triggers_are_refused() -> None:
    refused(lambda: Trigger("Order Placed"), "is not a ref", "order_placed")
    refused(lambda: Trigger("shop.order", schema={"type": "objekt"}), "not a JSON Schema")
    refused(lambda: Trigger("shop.order", shcema={}), "shcema: unknown option", "schema")  # type: ignore[call-arg]


def test_a_function_that_looks_for_events_is_a_trigger() -> None:
    @trigger(every="30s", schema=Small)
    async def new_files(state: dict[str, Any]) -> list[dict[str, Any]]:
        """New files."""
        return []

    assert new_files.kind == "trigger"
    assert (new_files.ref, new_files.is_coroutine) == ("shop.new_files", True)
    assert new_files.document().body["poll"] == {"every": 30}
    assert new_files.document().body["description"] == "New files."
    assert new_files.function is not None

    with pytest.raises(DefinitionError, match="takes parameters that nobody gives it"):

        @trigger(every="30s")
        def other(folder: str) -> None: ...

    with pytest.raises(DefinitionError, match=r"poll\.every: must be longer"):

        @trigger(every=0)
        def never() -> None: ...


def test_a_rule_refers_to_objects_or_refs_and_short_names_mean_its_own_pack() -> None:
    placed = Trigger("order_placed")
    by_object = Rule("big", trigger=placed, action=charge, when="payload.amount > 100")
    by_ref = Rule("shop.big", trigger="shop.order_placed", action="shop.charge", when="payload.amount > 100")
    by_name = Rule("big", trigger="order_placed", action="charge", when="payload.amount > 100")
    assert by_object.document() == by_ref.document() == by_name.document()
    assert by_object.document().body == {
        "ref": "shop.big",
        "trigger": "shop.order_placed",
        "action": "shop.charge",
        "when": "payload.amount > 100",
    }


def test_wrong_rules_are_refused_with_the_option_that_is_wrong() -> None:
    def rule(**options: Any) -> Callable[[], object]:
        return lambda: Rule("big", **{"trigger": "placed", "action": "charge", **options})

    refused(rule(when="payload.amount >"), "when: ")
    refused(rule(params={"customer": "{{ payload.id"}), "params: ")
    refused(rule(tigger="x"), "tigger: unknown option", "trigger")
    refused(rule(action=3), "action: is not a ref")
    refused(rule(enabled="yes"), "enabled: ")
    refused(rule(priority=10**9), "priority: ")
    refused(rule(expires="never"), "expires: is not a duration")
    refused(lambda: Rule("big", trigger="placed"), "action: is missing")  # type: ignore[call-arg]


def test_a_route_is_a_pattern_and_a_queue() -> None:
    assert Route("*::ml::*", "gpu").document().body == {
        "ref": "*::ml::*",
        "pattern": "*::ml::*",
        "route": "gpu",
    }
    refused(lambda: Route("a::b**", "gpu"), "glued to other characters", "segment of its own")
    refused(lambda: Route("a", "no such queue"), "is not a name")
    refused(lambda: Route("a", "b", positon=3), "positon: unknown option", "position")  # type: ignore[call-arg]


def test_a_limit_says_how_many_of_what() -> None:
    made = Limit(
        5, by=["customer", "order.region"], when_full="cancel_new", max_waiting=0, ref="db", scope=pack
    )
    assert made.document().body == {
        "ref": "shop.db",
        "scope": "shop",
        "max": 5,
        "by": ["customer", "order.region"],
        "when_full": "cancel_new",
        "max_waiting": 0,
    }
    scopes = ["global", "*", "shop", charge, "shop.charge"]
    assert [Limit(1, ref="a.b", scope=one).scope for one in scopes] == [
        "*",
        "*",
        "shop",
        "shop.charge",
        "shop.charge",
    ]


@pytest.mark.parametrize(
    ("rate", "count", "seconds"),
    [
        ("100/min", 100, 60),
        ("5/s", 5, 1),
        ("1000 per hour", 1000, 3600),
        ("3/10s", 3, 10),
        ("1/day", 1, 86_400),
    ],
)
def test_rates_are_read_as_people_write_them(rate: str, count: int, seconds: int) -> None:
    made = Limit(rate=rate).rate
    assert made is not None
    assert (made.count, made.seconds) == (count, seconds)


def test_a_burst_makes_the_window_as_long_as_it_takes_to_refill() -> None:
    made = Limit(rate="100/min", burst=10).rate
    assert made is not None
    assert (made.count, made.seconds) == (10, 6)


def test_wrong_limits_are_refused() -> None:
    refused(lambda: Limit(), "limits nothing", "Limit(5)")
    refused(lambda: Limit(0), "max: ")
    refused(lambda: Limit(1, by="no path!"), "by: is not a path", "order.customer.id")
    refused(lambda: Limit(1, by=["a", "a"]), "twice")
    refused(lambda: Limit(rate="often"), "rate: is not a rate", "100/min")
    refused(lambda: Limit(rate="0/s"), "rate: is not a rate")
    refused(lambda: Limit(1, burst=3), "burst", "rate")
    refused(lambda: Limit(1, ref="shop.db"), "a ref and no scope")
    refused(lambda: Limit(1, scope="shop"), "a scope and no ref")
    refused(lambda: Limit(1, ref="shop.db", scope="Not This"), "scope: covers nothing")
    refused(lambda: Limit(1, wen_full="x"), "wen_full: unknown option", "when_full")  # type: ignore[call-arg]


def test_schedules_that_mean_the_same_are_the_same() -> None:
    def digest(**when: Any) -> str:
        return Schedule("nightly", action=charge, **when).document().digest

    assert digest(cron="@daily") == digest(cron=" 0  0 * * * ")
    assert digest(cron="0 9 * * mon-fri") == digest(cron="0 9 * * MON-FRI")
    assert digest(cron="@every 90s") == digest(every=90) == digest(every=timedelta(seconds=90))
    assert Schedule("n", action=charge, every="1m30s").expression == "@every 90000ms"
    assert Schedule("n", action=charge, at=datetime(2030, 1, 1, 9)).expression == "at 2030-01-01T09:00:00"
    zone = timezone(timedelta(hours=1))
    assert digest(at="2030-01-01T01:00:00+01:00") == digest(at=datetime(2030, 1, 1, 1, tzinfo=zone))


def test_what_is_stored_of_a_schedule_is_what_was_chosen() -> None:
    made = Schedule(
        "nightly",
        action="charge",
        cron="0 2 * * *",
        timezone="Europe/Paris",
        missed=MissedFires(policy="skip", grace="10m"),
        overlap="queue",
        retry=RetryPolicy(max_attempts=2),
        ends_at=datetime(2031, 1, 1, tzinfo=UTC),
        jitter="30s",
    )
    assert made.document().body == {
        "ref": "shop.nightly",
        "action": "shop.charge",
        "cron": "0 2 * * *",
        "timezone": "Europe/Paris",
        "missed": {"policy": "skip", "grace": 600},
        "overlap": "queue",
        "retry": {"max_attempts": 2},
        "ends_at": "2031-01-01T00:00:00+00:00",
        "jitter": 30,
    }


def test_a_schedule_may_follow_a_calendar_rule() -> None:
    weekly = "DTSTART:20300107T090000 RRULE:FREQ=WEEKLY;BYDAY=MO"
    made = Schedule("weekly", action=charge, rrule=weekly)
    assert made.document().body == {"ref": "shop.weekly", "action": "shop.charge", "rrule": weekly}
    assert made.expression == weekly


def test_wrong_schedules_are_refused_with_the_field_that_is_wrong() -> None:
    def scheduled(**options: Any) -> Callable[[], object]:
        return lambda: Schedule("nightly", action=charge, **options)

    refused(scheduled(cron="61 2 * * *"), "cron: schedule '61 2 * * *': minute is wrong at character 1")
    refused(scheduled(cron="0 2 * * FUNDAY"), "day-of-week is wrong at character 9")
    refused(scheduled(cron="30 2 30 2 *"), "no day 30 in FEB")
    refused(scheduled(cron="0 2 * *"), "has 4 fields", "minute hour")
    refused(scheduled(cron="@dayly"), "there is no '@dayly'", "@daily")
    refused(scheduled(cron=5), "must be text")
    refused(scheduled(cron="@daily", timezone="Europe/Pariss"), "there is no time zone", "Europe/Paris")
    refused(scheduled(cron="@daily", timezone="../../etc/passwd"), "there is no time zone")
    refused(scheduled(), "must say when exactly once", "cron, every, at and rrule")
    refused(scheduled(cron="@daily", every=5), "must say when exactly once")
    refused(scheduled(at="tomorrow"), "at: is not an instant")
    refused(scheduled(every=5, starts_at=datetime(2030, 1, 1)), "starts_at: is an instant without a zone")
    refused(scheduled(every="10ms"), "shorter than a second")
    refused(scheduled(rrule="FREQ=WEEKLY"), "not a start and a rule", "DTSTART")
    late, early = "2031-01-01T00:00Z", "2030-01-01T00:00Z"
    refused(scheduled(every=5, starts_at=late, ends_at=early), "ends before it starts")
    refused(scheduled(every=5, overlap="maybe"), "overlap: ")
    refused(scheduled(every=5, missed={"polcy": "skip"}), "missed.polcy: unknown option", "policy")


@pytest.mark.parametrize(
    ("missed", "says", "hint"),
    [
        ({"delay": 5}, "delay does nothing without policy: delay", "Add policy: delay"),
        ({"at_most": 5}, "at_most does nothing without catch_up: all", "Add catch_up: all"),
        ({"policy": "skip", "catch_up": "all"}, "catch_up does nothing", "execute or delay"),
        ({"policy": "skip", "spread": 9}, "spread does nothing", "execute or delay"),
    ],
)
def test_what_would_do_nothing_about_missed_fires_is_refused(
    missed: dict[str, Any], says: str, hint: str
) -> None:
    refused(lambda: Schedule("nightly", action=charge, every=5, missed=missed), says, hint)


def test_a_schedule_tells_its_runs_what_it_likes_but_for_what_they_are_told_anyway() -> None:
    def telling(**context: Any) -> Callable[[], object]:
        return lambda: Schedule("nightly", action=charge, every=5, context=context)

    telling(region="east", depth=[1, {"a": None}])()
    refused(telling(scheduled_time="now"), "context: scheduled_time is for Penstock to say", "another name")
    refused(telling(what=object()), "context: is not JSON")
    refused(telling(what="x" * 40_000), "context: has 40,011 bytes, more than 32,768", "link")


def test_a_decorator_schedules_an_action() -> None:
    @schedule("@hourly", ref="often", params={"customer": "x"})
    @schedule(every="1d")
    @action
    def report(customer: str = "") -> None: ...

    daily, hourly = report.schedules
    assert (daily.ref, daily.action, daily.every) == ("shop.report", "shop.report", 86_400)
    assert (hourly.ref, hourly.cron) == ("shop.often", "0 * * * *")

    @schedule("@daily", params={"day": "today"})
    @workflow(pack="shop")
    def survey(day: str) -> None:
        report(customer=day)

    _, made = survey.parts()
    assert (made.ref, made.action, made.kind) == ("shop.survey", "shop.survey", "schedule")

    with pytest.raises(DefinitionError, match="is for actions"):

        @schedule("@daily")
        def plain() -> None: ...

    with pytest.raises(DefinitionError, match="overlp: unknown option"):

        @schedule("@daily", overlp="skip")
        @action
        def other() -> None: ...


def test_pack_names_are_checked() -> None:
    refused(lambda: Pack("My Shop"), "is not a pack's name", "my_shop")
