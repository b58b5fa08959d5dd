"""The changes of clocks, against a walk through real minutes, and the stated cases one by one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.language.schedules import Spec
from penstock.language.schedules.zones import next_change

from .walking import MINUTE, Clockwork, changes, walk

ZONES = (
    "Europe/Berlin",
    "Europe/Dublin",  # its winter time is the odd one out ("negative" daylight saving)
    "America/New_York",
    "America/St_Johns",  # half an hour off
    "America/Havana",  # changes at midnight
    "Africa/Casablanca",  # goes back for Ramadan
    "Asia/Jerusalem",
    "Australia/Lord_Howe",  # changes by half an hour
    "Pacific/Chatham",  # three quarters of an hour off
    "Pacific/Auckland",
)
EXPRESSIONS = (
    "30 2 * * *",
    "30 1 * * *",
    "0 0 * * *",
    "15 0,2 * * *",
    "0 1-3 * * *",
    "10-50/20 1,2 * * *",
    "45 2 * * 0",
    "*/30 * * * *",
    "15 * * * *",
    "*/20 2 * * *",
    "0 */2 * * *",
    "*/7 0-3 * * *",
)
PAST = (("America/Sao_Paulo", 2018, 2019), ("Pacific/Apia", 2011, 2012), ("Africa/Cairo", 2010, 2010))


def all_changes() -> list[tuple[str, datetime]]:
    spans = [(zone, 2024, 2030) for zone in ZONES] + list(PAST)
    return [(zone, at) for zone, first, last in spans for at in changes(zone, first, last)]


def test_every_change_of_2024_to_2030_in_ten_zones_fires_as_the_walk_says() -> None:
    found = all_changes()
    assert len(found) > 150
    for zone, at in found:
        start, end = at - timedelta(hours=3), at + timedelta(hours=26)
        steps = walk(zone, start, end)
        for expression in EXPRESSIONS:
            expected = Clockwork(expression).fires(steps)
            fires = Spec.parse(expression, zone).between(start - MINUTE, end, None)
            assert fires == expected, f"{expression} in {zone} around {at}"


minutes = st.sampled_from(["0", "30", "*", "*/15", "*/7", "59", "5,35", "10-20/5"])
hours = st.sampled_from(["*", "0", "1", "2", "3", "23", "*/2", "1-3", "0,2", "22-23", "*/5"])
days = st.sampled_from(["*", "*/2", "1-15", "25-31"])
weekdays = st.sampled_from(["*", "*/2"])
# To find them takes a second, which every process that collects this file need not spend.
changes_of_all = st.deferred(lambda: st.sampled_from(all_changes()))


@settings(max_examples=150)
@given(changes_of_all, minutes, hours, days, weekdays, st.integers(-1200, 1200))
def test_the_next_fire_after_any_instant_is_the_next_of_the_walk(
    change: tuple[str, datetime], minute: str, hour: str, day: str, weekday: str, distance: int
) -> None:
    zone, at = change
    expression = f"{minute} {hour} {day} * {weekday}"
    # The walk starts long before, for the oracle must know which times have been.
    expected = Clockwork(expression).fires(walk(zone, at - timedelta(hours=40), at + timedelta(hours=40)))
    instant = at + timedelta(seconds=30 * distance)
    later = [fire for fire in expected if fire > instant]
    if later:
        assert Spec.parse(expression, zone).after(instant) == later[0]


@settings(max_examples=200)
@given(
    st.sampled_from(sorted(zone for zone in available_timezones() if "/" in zone)),
    st.integers(1973, 2037),
    st.randoms(use_true_random=False),
)
def test_an_instant_between_two_seconds_has_the_next_fire_of_the_walk(
    zone: str, year: int, random: Random
) -> None:
    at = random.choice(changes(zone, year, year) or (datetime(year, 6, 1, 12, tzinfo=UTC),))
    steps = walk(zone, at - timedelta(hours=30), at + timedelta(hours=30))
    for expression in random.sample(EXPRESSIONS, 4):
        expected = Clockwork(expression).fires(steps)
        instant = at + timedelta(microseconds=random.randint(-7_200_000_000, 7_200_000_000))
        later = [fire for fire in expected if fire > instant]
        fires = Spec.parse(expression, zone).between(instant, steps[-1][0], None)
        assert fires == later, f"{expression} in {zone} after {instant}"


@pytest.mark.parametrize("fraction", [0, 1, 123_456, 500_000, 999_999])
@pytest.mark.parametrize("seconds", [0, 1, 2, 3, 86_399])
def test_a_change_is_found_at_its_second_from_any_instant_before(seconds: int, fraction: int) -> None:
    change = datetime(2027, 3, 28, 1, tzinfo=UTC)
    start = change - timedelta(seconds=seconds, microseconds=fraction)
    expected = change if start < change else None
    for until in (change, change + timedelta(microseconds=1), change + timedelta(days=3, microseconds=7)):
        assert next_change(start, until, ZoneInfo("Europe/London")) == expected


def local(zone: str, spec: str, first: str, last: str) -> list[str]:
    """The local times at which `spec` fires on these days."""
    start = datetime.fromisoformat(first).replace(tzinfo=ZoneInfo(zone)) - timedelta(seconds=1)
    end = datetime.fromisoformat(last + "T23:59:59").replace(tzinfo=ZoneInfo(zone))
    return [
        f"{fire.astimezone(ZoneInfo(zone)):%d %H:%M%z}"
        for fire in Spec.parse(spec, zone).between(start, end, None)
    ]


@pytest.mark.parametrize(
    ("zone", "spec", "day", "fires"),
    [
        # forward, from 02:00 to 03:00: a fixed time in the gap fires when the gap ends
        ("Europe/Berlin", "30 2 * * *", "2026-03-29", ["29 03:00+0200"]),
        ("Europe/Berlin", "0 2 * * *", "2026-03-29", ["29 03:00+0200"]),
        ("Europe/Berlin", "0,30 2 * * *", "2026-03-29", ["29 03:00+0200"]),
        ("Europe/Berlin", "0 2,3 * * *", "2026-03-29", ["29 03:00+0200"]),
        ("Europe/Berlin", "0 3 * * *", "2026-03-29", ["29 03:00+0200"]),
        ("Europe/Berlin", "0 2 * * *", "2026-03-28", ["28 02:00+0100"]),
        # an interval fires whenever the wall clock shows a matching time, and what the clocks skip is left out
        ("Europe/Berlin", "0 */2 * * *", "2026-03-29", ["29 00:00+0100"] + [f"29 {h:02}:00+0200" for h in range(4, 24, 2)]),
        ("Europe/Berlin", "*/30 2 * * *", "2026-03-29", []),
        # back, from 03:00 to 02:00: a fixed time fires the first time
        ("Europe/Berlin", "30 2 * * *", "2026-10-25", ["25 02:30+0200"]),
        ("Europe/Berlin", "0 3 * * *", "2026-10-25", ["25 03:00+0100"]),
        ("Europe/Berlin", "*/30 2 * * *", "2026-10-25",
         ["25 02:00+0200", "25 02:30+0200", "25 02:00+0100", "25 02:30+0100"]),
        # by half an hour
        ("Australia/Lord_Howe", "15 2 * * *", "2026-10-04", ["04 02:30+1100"]),
        ("Australia/Lord_Howe", "45 1 * * *", "2026-04-05", ["05 01:45+1100"]),
        ("Australia/Lord_Howe", "*/15 1-2 * * *", "2026-04-05",
         ["05 01:00+1100", "05 01:15+1100", "05 01:30+1100", "05 01:45+1100", "05 01:30+1030", "05 01:45+1030",
          "05 02:00+1030", "05 02:15+1030", "05 02:30+1030", "05 02:45+1030"]),
        # midnight is skipped, and comes twice
        ("America/Sao_Paulo", "0 0 * * *", "2018-11-04", ["04 01:00-0200"]),
        ("America/Havana", "30 0 * * *", "2026-11-01", ["01 00:30-0400"]),
        # a whole day is skipped: what was due then fires when the next begins
        ("Pacific/Apia", "0 12 * * *", "2011-12-29", ["29 12:00-1000", "31 00:00+1400", "31 12:00+1400"]),
        ("Pacific/Apia", "0 */12 * * *", "2011-12-29",
         ["29 00:00-1000", "29 12:00-1000", "31 00:00+1400", "31 12:00+1400"]),
        # with seconds the same
        ("Europe/Berlin", "15 30 2 * * *", "2026-03-29", ["29 03:00+0200"]),
        ("Europe/Berlin", "15 30 2 * * *", "2026-10-25", ["25 02:30+0200"]),
        ("Europe/Berlin", "0 0 * * * *", "2026-03-29", [f"29 {h:02}:00+0{1 + (h > 2)}00" for h in range(24) if h != 2]),
        # and whatever else has a local time
        ("Europe/Berlin", "at 2026-03-29T02:30", "2026-03-29", ["29 03:00+0200"]),
        ("Europe/Berlin", "at 2026-10-25T02:30", "2026-10-25", ["25 02:30+0200"]),
        ("Europe/Berlin", "DTSTART:20260101T023000 RRULE:FREQ=DAILY", "2026-03-29", ["29 03:00+0200"]),
        ("Europe/Berlin", "DTSTART:20260101T023000 RRULE:FREQ=DAILY", "2026-10-25", ["25 02:30+0200"]),
    ],
)  # fmt: skip
def test_fires_are_right_where_the_clocks_change(zone: str, spec: str, day: str, fires: list[str]) -> None:
    last = "2011-12-31" if zone == "Pacific/Apia" else day
    assert local(zone, spec, day, last) == fires


def test_every_so_often_takes_no_notice_of_the_clocks() -> None:
    start = datetime(2026, 3, 28, 23, 59, tzinfo=UTC)
    fires = Spec.parse("@every 40m", "Europe/Berlin").between(start, start + timedelta(hours=6), None)
    assert {b - a for a, b in pairwise(fires)} == {timedelta(minutes=40)}


def test_a_daily_job_runs_every_day_in_every_zone() -> None:
    for zone in ZONES:
        for expression in ("0 0 * * *", "30 2 * * *", "30 1 * * *"):
            start = datetime(2024, 1, 1, tzinfo=ZoneInfo(zone)) - timedelta(seconds=1)
            end = datetime(2026, 1, 1, tzinfo=ZoneInfo(zone)) - timedelta(seconds=1)
            fires = Spec.parse(expression, zone).between(start, end, None)
            days = [fire.astimezone(ZoneInfo(zone)).date() for fire in fires]
            assert len(days) == len(set(days)) == 366 + 365


def test_the_preview_notes_the_changes_of_the_clocks() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    first, second = Spec.parse("30 2 * * *", "Europe/Berlin").preview(
        2, datetime(2026, 3, 28, 12, tzinfo=UTC)
    )
    assert first.local == datetime(2026, 3, 29, 3, tzinfo=berlin)
    assert first.instant == datetime(2026, 3, 29, 1, tzinfo=UTC)
    assert first.note == "02:30 is skipped as the clocks go forward; fires when the gap ends"
    assert second.note is None

    (once,) = Spec.parse("30 2 * * *", "Europe/Berlin").preview(1, datetime(2026, 10, 24, 12, tzinfo=UTC))
    assert once.note == "02:30 comes twice as the clocks go back; fires the first time"

    twice = Spec.parse("*/30 * * * *", "Europe/Berlin").preview(6, datetime(2026, 10, 24, 23, 45, tzinfo=UTC))
    notes = [(f"{p.local:%H:%M}", p.note and p.note.rpartition(" the ")[2]) for p in twice]
    assert notes == [
        ("02:00", "first time"),
        ("02:30", "first time"),
        ("02:00", "second time"),
        ("02:30", "second time"),
        ("03:00", None),
        ("03:30", None),
    ]
