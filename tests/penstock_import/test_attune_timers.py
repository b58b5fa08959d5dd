"""Timers of Attune's core pack fire when its sensor fires: in UTC, with seconds in front, on days that fit both fields."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from apscheduler.triggers.cron import CronTrigger

from penstock.language.schedules.cron import parse_cron
from penstock.language.schedules.rrule import parse_rrule
from penstock_import.attune_timers import timing
from penstock_import.wanted_text import NotMapped

RANGES = [(0, 59), (0, 59), (0, 23), (1, 31), (1, 12), (0, 6)]


def fires(times: dict[str, Any], start: datetime, count: int) -> list[datetime]:
    zone = ZoneInfo(times.get("timezone", "UTC"))
    walk = parse_cron(times["cron"], zone) if "cron" in times else parse_rrule(times["rrule"], zone)
    return [due.instant for due in islice(walk(start - timedelta(seconds=1)), count)]


def term(rng: random.Random, low: int, high: int) -> str:
    first, last = sorted((rng.randint(low, high), rng.randint(low, high)))
    return rng.choice(["*", str(first), f"{first}-{last}", f"{first},{last}", f"*/{rng.randint(2, 3)}"])


@pytest.mark.parametrize("seed", range(2))
def test_random_expressions_fire_on_days_that_fit_both_fields(seed: int) -> None:
    """APScheduler asks for both days, too, so that it stands for the library of Attune's sensor."""
    rng = random.Random(seed)
    compared = 0
    for _ in range(40):
        fields = [term(rng, low, high) for low, high in RANGES]
        fields[0] = str(rng.randint(0, 59))
        start = datetime(2026, rng.randint(1, 12), rng.randint(1, 28), 5, tzinfo=UTC)
        names = ("second", "minute", "hour", "day", "month")
        days = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
        weekday = ",".join(days[n] for n in range(7) if n in weekdays(fields[5]))
        trigger = CronTrigger(**dict(zip(names, fields, strict=False)), day_of_week=weekday, timezone="UTC")
        theirs, now = [], start
        try:
            ours = fires(timing("core.crontimer", {"expression": " ".join(fields)}), start, 6)
        except NotMapped:
            continue
        for _ in range(len(ours)):
            following = trigger.get_next_fire_time(None, now)
            theirs.append(following)
            now = following + timedelta(seconds=1)
        assert ours == theirs, fields
        compared += 1
    assert compared > 20


def weekdays(field: str) -> set[int]:
    if field == "*":
        return set(range(7))
    if field.startswith("*/"):
        return set(range(0, 7, int(field[2:])))
    if "-" in field:
        first, last = map(int, field.split("-"))
        return set(range(first, last + 1))
    return {int(number) for number in field.split(",")}


@pytest.mark.parametrize(
    ("trigger", "parameters", "ours"),
    [
        ("core.intervaltimer", {"interval": 5}, {"every": 5}),
        ("core.intervaltimer", {"interval": 2, "unit": "hours"}, {"every": 7200}),
        ("core.crontimer", {"expression": "0 0 9 * * MON-FRI"}, {"cron": "0 9 * * 1-5"}),
        ("core.crontimer", {"expression": "30 */5 * * * 7"}, {"cron": "30 */5 * * * 0"}),
        ("core.datetimetimer", {"fire_at": "2030-01-31T09:00:00Z"}, {"at": "2030-01-31T09:00:00+00:00"}),
        (
            "core.rruletimer",
            {"freq": "WEEKLY", "interval": 2, "by_day": ["MO"], "dtstart": "2030-01-07T08:00:00Z",
             "timezone": "Europe/Paris"},
            {"rrule": "DTSTART:20300107T090000 RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO", "timezone": "Europe/Paris"},
        ),
    ],
)  # fmt: skip
def test_timer_becomes_times(trigger: str, parameters: dict[str, Any], ours: dict[str, Any]) -> None:
    assert timing(trigger, parameters) == ours


@pytest.mark.parametrize(
    ("trigger", "parameters"),
    [
        ("core.crontimer", {"expression": "0 9 * * MON"}),  # it refuses five fields
        ("core.crontimer", {"expression": "0 0 9 * * 1", "timezone": "Europe/Paris"}),  # it reads UTC
        ("core.crontimer", {"expression": "0 5/10 * * * *"}),
        ("core.crontimer", {"expression": "0 0 9 L * *"}),
        ("core.intervaltimer", {"interval": 0}),
        ("core.intervaltimer", {"interval": 5, "jitter": 1}),
        ("core.datetimetimer", {"fire_at": "soon"}),
        ("core.rruletimer", {"freq": "HOURLY", "dtstart": "2030-01-07T08:00:00Z"}),
        (
            "core.rruletimer",
            {"freq": "DAILY", "until": "2031-01-01T00:00:00Z", "dtstart": "2030-01-07T08:00:00Z"},
        ),
    ],
)
def test_timer_without_an_equal_is_not_mapped(trigger: str, parameters: dict[str, Any]) -> None:
    with pytest.raises(NotMapped):
        timing(trigger, parameters)
