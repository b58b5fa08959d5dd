"""Timers fire when APScheduler's triggers fire, which StackStorm's timers are."""

from __future__ import annotations

import os
import random
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from apscheduler.triggers.cron import CronTrigger

from penstock.language.schedules.cron import parse_cron
from penstock.language.schedules.rrule import parse_rrule
from penstock_import.apscheduler_times import timer
from penstock_import.wanted_text import NotMapped

CASES = int(os.environ.get("PENSTOCK_TEST_IMPORT_CASES", "180"))
"""The number of random inputs that are compared."""
RANGES = {
    "month": (1, 12),
    "day": (1, 31),
    "day_of_week": (0, 6),
    "hour": (0, 23),
    "minute": (0, 59),
    "second": (0, 59),
}


def fires_of_ours(parameters: dict[str, Any], start: datetime, count: int) -> list[datetime]:
    """Raises NotMapped."""
    ours = timer("core.st2.CronTimer", parameters)
    zone = ZoneInfo("UTC")
    walk = parse_cron(ours["cron"], zone) if "cron" in ours else parse_rrule(ours["rrule"], zone)
    return [due.instant for due in islice(walk(start - timedelta(seconds=1)), count)]


def fires_of_theirs(trigger: Any, start: datetime, count: int) -> list[datetime]:
    fires: list[datetime] = []
    previous, now = None, start
    for _ in range(count):
        following = trigger.get_next_fire_time(previous, now)
        if following is None:
            break
        fires.append(following.astimezone(UTC))
        previous, now = following, following + timedelta(microseconds=1)
    return fires


def term(rng: random.Random, field: str) -> str:
    low, high = RANGES[field]
    entry = rng.randint(low, high)
    two = rng.randint(entry, high)
    named = {
        "day_of_week": ["mon", "fri", "mon-fri", "sat-sun", "TUE-thu"],
        "month": ["jan", "feb-jun"],
        "day": ["last", "1st mon", "2nd fri", "last sun"],
    }
    if field in named and rng.random() < 0.25:
        return rng.choice(named[field])
    step = rng.randint(1, 9 if high > 9 else 3)
    return rng.choice(
        [
            str(entry),
            f"{entry}-{two}",
            f"{entry}-{two}/{rng.randint(1, 4)}",
            f"*/{step}",
            "*",
            f"{entry},{two}",
        ]
    )


@pytest.mark.parametrize("seed", range(3))
def test_random_timers_fire_when_apscheduler_fires(seed: int) -> None:
    rng = random.Random(seed)
    compared = 0
    for _ in range(CASES // 3):
        parameters = {field: term(rng, field) for field in RANGES if rng.random() < 0.45}
        start = datetime(2026, rng.randint(1, 12), rng.randint(1, 28), rng.randint(0, 23), tzinfo=UTC)
        try:
            ours = fires_of_ours(parameters, start, 12)
            theirs = fires_of_theirs(CronTrigger(timezone="UTC", **parameters), start, len(ours))
        except (NotMapped, ValueError):
            continue
        assert ours == theirs, parameters
        compared += 1
    assert compared > 30


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"second": 0}, {"cron": "* * * * *"}),
        ({"hour": 2, "second": 0}, {"cron": "* 2 * * *"}),
        ({"day_of_week": "mon"}, {"cron": "0 0 * * 1"}),
        ({"hour": 2}, {"cron": "0 2 * * *"}),
    ],
)
def test_fields_that_are_not_given(parameters: dict[str, Any], expected: dict[str, str]) -> None:
    assert timer("core.st2.CronTimer", parameters) == expected


def test_first_monday_fires_once_a_month() -> None:
    fires = fires_of_ours(
        {"day": "1-7", "day_of_week": "mon", "hour": 8}, datetime(2026, 1, 1, tzinfo=UTC), 3
    )
    assert [fire.isoformat()[:10] for fire in fires] == ["2026-01-05", "2026-02-02", "2026-03-02"]


def test_interval_and_date() -> None:
    assert timer("core.st2.IntervalTimer", {"unit": "hours", "delta": 2}) == {"every": 7200}
    assert timer("core.st2.DateTimer", {"date": "2030-01-01 08:00:00", "timezone": "Europe/Paris"}) == {
        "at": "2030-01-01T08:00:00",
        "timezone": "Europe/Paris",
    }
    with pytest.raises(NotMapped):
        timer("core.st2.CronTimer", {"week": "2", "hour": 1})
