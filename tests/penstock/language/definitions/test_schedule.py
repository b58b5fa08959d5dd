"""Schedules, as they are declared."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from penstock import workflow
from penstock.errors import DefinitionError
from penstock.language.definitions import MissedFires, Pack, Schedule, action, schedule
from penstock.language.policies.policies import RetryPolicy
from tests.penstock.language.definitions.refusals import refused

pack = Pack("shop")


@action
def charge(customer: str = "") -> None: ...


def test_schedules_that_mean_the_same_are_the_same() -> None:
    def digest(**when: Any) -> str:
        return Schedule("nightly", action=charge, **when).document().digest

    assert digest(cron="@daily") == digest(cron=" 0  0 * * * ")
    assert digest(cron="0 9 * * mon-fri") == digest(cron="0 9 * * MON-FRI")
    assert digest(cron="@every 90s") == digest(every=90) == digest(every=timedelta(seconds=90))
    assert Schedule("n", action=charge, every="1m30s").expression == "@every 1m30s"
    assert Schedule("n", action=charge, at=datetime(2030, 1, 1, 9)).expression == "at 2030-01-01T09:00:00"
    zone = timezone(timedelta(hours=1))
    assert digest(at="2030-01-01T01:00:00+01:00") == digest(at=datetime(2030, 1, 1, 1, tzinfo=zone))


def test_the_stored_schedule_has_the_chosen_options() -> None:
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
        priority=-3,
        expires="5m",
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
        "priority": -3,
        "expires": 300,
    }


def test_expiry_before_the_start_of_a_fire_is_refused() -> None:
    def scheduled(**options: Any) -> Callable[[], object]:
        return lambda: Schedule("nightly", action=charge, cron="@daily", **options)

    refused(
        scheduled(expires="30s", jitter="30s"), "expires after 30s, and jitter delays", "longer than jitter"
    )
    late = "expires after 6m, and missed fires start more than 6m after"
    refused(scheduled(expires="6m", missed={"policy": "delay"}), late, "policy: skip")
    refused(scheduled(expires="5m", missed={"catch_up": "all"}), "missed fires start more than 5m after")
    scheduled(expires="31s", jitter="30s")()
    scheduled(expires="5m1s", missed={"catch_up": "all"})()
    scheduled(expires="1s")()


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
    refused(scheduled(), "needs exactly one time", "cron, every, at and rrule")
    refused(scheduled(cron="@daily", every=5), "needs exactly one time")
    refused(scheduled(at="tomorrow"), "at: is not an instant")
    refused(scheduled(every=5, starts_at=datetime(2030, 1, 1)), "starts_at: is an instant without a zone")
    refused(scheduled(every="10ms"), "shorter than a second")
    refused(scheduled(rrule="FREQ=WEEKLY"), "not a DTSTART and an RRULE", "DTSTART")
    late, early = "2031-01-01T00:00Z", "2030-01-01T00:00Z"
    refused(scheduled(every=5, starts_at=late, ends_at=early), "ends before it starts")
    refused(scheduled(every=5, overlap="maybe"), "overlap: ")
    refused(scheduled(every=5, priority=32768), "priority: ")
    refused(scheduled(every=5, expires=0), "expires: must be longer than 0 s")
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
def test_an_ineffective_missed_fires_option_is_refused(missed: dict[str, Any], says: str, hint: str) -> None:
    refused(lambda: Schedule("nightly", action=charge, every=5, missed=missed), says, hint)


def test_a_schedule_gives_its_runs_context_but_reserved_names() -> None:
    def telling(**context: Any) -> Callable[[], object]:
        return lambda: Schedule("nightly", action=charge, every=5, context=context)

    telling(region="east", depth=[1, {"a": None}])()
    refused(telling(scheduled_time="now"), "context: scheduled_time is set by Penstock", "another name")
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


@pytest.mark.parametrize(
    "instant",
    [
        "9999-12-31T23:59:59-14:00",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59Z",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59",
        "0001-01-01T00:00:00",
    ],
)
@pytest.mark.parametrize("name", ["at", "starts_at", "ends_at", "rrule"])
def test_instant_out_of_range_is_refused(name: str, instant: str) -> None:
    compact = instant.replace("-", "", 2).replace(":", "", 2)
    options: dict[str, Any] = {name: instant} if name != "rrule" else {"rrule": f"FREQ=DAILY;UNTIL={compact}"}
    if name in ("starts_at", "ends_at"):
        options["cron"] = "0 0 * * *"
    for zone in ("UTC", "Pacific/Kiritimati", "America/Los_Angeles"):
        try:
            Schedule("nightly", action=charge, timezone=zone, **options)
        except DefinitionError:
            continue
        assert name == "rrule", options
