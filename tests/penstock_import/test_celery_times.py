"""Crontabs fire when Celery's own fire."""

from __future__ import annotations

import ast
import os
import random
from datetime import UTC, datetime
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from celery.schedules import crontab

from penstock.language.schedules.cron import parse_cron
from penstock.language.schedules.rrule import parse_rrule
from penstock_import.celery_times import times
from penstock_import.wanted_text import NotMapped

CASES = int(os.environ.get("PENSTOCK_TEST_IMPORT_CASES", "180"))
"""The number of random inputs that are compared."""
RANGES = {
    "minute": (0, 59),
    "hour": (0, 23),
    "day_of_month": (1, 31),
    "month_of_year": (1, 12),
    "day_of_week": (0, 6),
}


def fires_of_ours(source: str, start: datetime, count: int) -> list[datetime]:
    """Raises NotMapped."""
    ours = times(ast.parse(source, mode="eval").body)
    zone = ZoneInfo("UTC")
    walk = parse_cron(ours["cron"], zone) if "cron" in ours else parse_rrule(ours["rrule"], zone)
    return [due.instant for due in islice(walk(start), count)]


def fires_of_celery(fields: dict[str, object], start: datetime, count: int) -> list[datetime]:
    now = [start]
    theirs = crontab(nowfun=lambda: now[0], **fields)
    fires = []
    for _ in range(count):
        last, delta, _ = theirs.remaining_delta(now[0])
        now[0] = last + delta
        fires.append(now[0])
    return fires


def term(rng: random.Random, field: str) -> str:
    low, high = RANGES[field]
    entry, two = rng.randint(low, high), rng.randint(low, high)
    named = {
        "day_of_week": ["mon", "sun", "mon-fri", "fri-mon", "monday"],
        "month_of_year": ["jan", "nov-feb"],
    }
    if field in named and rng.random() < 0.3:
        return rng.choice(named[field])
    step = rng.randint(1, 20 if high > 20 else 4)
    ordered = f"{min(entry, two)}-{max(entry, two)}/{rng.randint(1, 5)}"
    return rng.choice([str(entry), f"{entry}-{two}", ordered, f"*/{step}", "*", f"{entry},{two}"])


@pytest.mark.parametrize("seed", range(3))
def test_random_crontabs_fire_when_celery_fires(seed: int) -> None:
    rng = random.Random(seed)
    compared = 0
    for _ in range(CASES // 3):
        fields = {field: term(rng, field) for field in RANGES if rng.random() < 0.45}
        source = f"crontab({', '.join(f'{name}={value!r}' for name, value in fields.items())})"
        start = datetime(2026, rng.randint(1, 12), rng.randint(1, 28), rng.randint(0, 23), 14, 30, tzinfo=UTC)
        try:
            ours = fires_of_ours(source, start, 12)
        except NotMapped:
            continue
        assert ours == fires_of_celery(dict(fields), start, len(ours)), source
        compared += 1
    assert compared > 40


@pytest.mark.parametrize("values", [[0, "*", "*", "*", "*"], [5, 3, "*"], ["*/7", 2, "*", "*"]])
def test_stars_by_position_fire_when_celery_fires(values: list[int | str]) -> None:
    """Versions of Celery have other orders of the days. A star means the same at each place."""
    start = datetime(2026, 1, 1, 0, 14, tzinfo=UTC)
    theirs = crontab(*values)
    fields = {field: sorted(getattr(theirs, field)) for field in RANGES}
    ours = fires_of_ours(f"crontab({', '.join(map(repr, values))})", start, 12)
    assert ours == fires_of_celery(dict(fields), start, 12)


def test_both_days_of_a_crontab_are_required() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    fires = fires_of_ours("crontab(minute=0, hour=8, day_of_month='1-7', day_of_week='mon')", start, 4)
    assert [(fire.weekday(), fire.day <= 7) for fire in fires] == [(0, True)] * 4
    assert len({fire.month for fire in fires}) == 4


@pytest.mark.parametrize(
    "source",
    [
        "crontab(0, 1, 2)",
        "crontab(0, 1, '*', '*', 3)",
        "crontab(0, 1, '*', day_of_week=3)",
        "crontab(0, 1, '*', '*', '*', '*')",
        "crontab(minute='61')",
        "crontab(minute=0, tz='UTC')",
        "crontab(minute='5/10')",
        "crontab(day_of_month=1, day_of_week=1)",
    ],
)
def test_crontab_that_is_not_certain_is_refused(source: str) -> None:
    with pytest.raises(NotMapped):
        times(ast.parse(source, mode="eval").body)
