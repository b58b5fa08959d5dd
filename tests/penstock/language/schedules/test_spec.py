from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from cronsim import CronSim, CronSimError
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import DefinitionError
from penstock.language.schedules import Spec, find_zone

NOW = datetime(2026, 3, 4, 10, 20, 30, tzinfo=UTC)  # a Wednesday


def next_of(text: str, zone: str = "UTC", count: int = 3) -> list[str]:
    return [f"{p.local:%Y-%m-%d %H:%M:%S}" for p in Spec.parse(text, zone).preview(count, NOW)]


@pytest.mark.parametrize(
    ("text", "fires"),
    [
        ("*/15 * * * *", ["2026-03-04 10:30:00", "2026-03-04 10:45:00", "2026-03-04 11:00:00"]),
        ("0 9 * * MON-FRI", ["2026-03-05 09:00:00", "2026-03-06 09:00:00", "2026-03-09 09:00:00"]),
        ("30 2 * * SUN", ["2026-03-08 02:30:00", "2026-03-15 02:30:00", "2026-03-22 02:30:00"]),
        ("0 0 1 * *", ["2026-04-01 00:00:00", "2026-05-01 00:00:00", "2026-06-01 00:00:00"]),
        ("0 0 1 jan,jul *", ["2026-07-01 00:00:00", "2027-01-01 00:00:00", "2027-07-01 00:00:00"]),
        ("5 4 * * 7", ["2026-03-08 04:05:00", "2026-03-15 04:05:00", "2026-03-22 04:05:00"]),
        ("0 0 13 * FRI", ["2026-03-06 00:00:00", "2026-03-13 00:00:00", "2026-03-20 00:00:00"]),  # either
        ("0 0 L * *", ["2026-03-31 00:00:00", "2026-04-30 00:00:00", "2026-05-31 00:00:00"]),
        ("0 0 * * 5L", ["2026-03-27 00:00:00", "2026-04-24 00:00:00", "2026-05-29 00:00:00"]),
        ("0 0 * * MON#2", ["2026-03-09 00:00:00", "2026-04-13 00:00:00", "2026-05-11 00:00:00"]),
        ("0 9-9/2 * * *", ["2026-03-05 09:00:00", "2026-03-06 09:00:00", "2026-03-07 09:00:00"]),
        ("0 9-12/2,20-20/3 * * *", ["2026-03-04 11:00:00", "2026-03-04 20:00:00", "2026-03-05 09:00:00"]),
        ("50/5 10 * * *", ["2026-03-04 10:50:00", "2026-03-04 10:55:00", "2026-03-05 10:50:00"]),
        ("*/20 20 10 * * *", ["2026-03-04 10:20:40", "2026-03-05 10:20:00", "2026-03-05 10:20:20"]),
        ("  0   12  * * * ", ["2026-03-04 12:00:00", "2026-03-05 12:00:00", "2026-03-06 12:00:00"]),
        ("0 0 29 2 *", ["2028-02-29 00:00:00", "2032-02-29 00:00:00", "2036-02-29 00:00:00"]),
        ("@hourly", ["2026-03-04 11:00:00", "2026-03-04 12:00:00", "2026-03-04 13:00:00"]),
        ("@Daily", ["2026-03-05 00:00:00", "2026-03-06 00:00:00", "2026-03-07 00:00:00"]),
        ("@midnight", ["2026-03-05 00:00:00", "2026-03-06 00:00:00", "2026-03-07 00:00:00"]),
        ("@weekly", ["2026-03-08 00:00:00", "2026-03-15 00:00:00", "2026-03-22 00:00:00"]),
        ("@monthly", ["2026-04-01 00:00:00", "2026-05-01 00:00:00", "2026-06-01 00:00:00"]),
        ("@yearly", ["2027-01-01 00:00:00", "2028-01-01 00:00:00", "2029-01-01 00:00:00"]),
        ("@annually", ["2027-01-01 00:00:00", "2028-01-01 00:00:00", "2029-01-01 00:00:00"]),
        ("@every 90s", ["2026-03-04 10:21:00", "2026-03-04 10:22:30", "2026-03-04 10:24:00"]),
        ("@every 1h30m", ["2026-03-04 10:30:00", "2026-03-04 12:00:00", "2026-03-04 13:30:00"]),
        ("at 2026-03-04T10:20:31", ["2026-03-04 10:20:31"]),
        ("@at 2026-12-24T18:00:00+01:00", ["2026-12-24 17:00:00"]),
        ("at 2026-03-04T10:20:30", []),
        ("DTSTART:20260302T090000 RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE",
         ["2026-03-16 09:00:00", "2026-03-18 09:00:00", "2026-03-30 09:00:00"]),
        ("DTSTART:20260101T090000\nRRULE:FREQ=MONTHLY;BYDAY=-1FR",
         ["2026-03-27 09:00:00", "2026-04-24 09:00:00", "2026-05-29 09:00:00"]),
        ("DTSTART:20260131T090000 RRULE:FREQ=DAILY;BYMONTH=2",
         ["2027-02-01 09:00:00", "2027-02-02 09:00:00", "2027-02-03 09:00:00"]),
        ("DTSTART:20260131T090000 RRULE:FREQ=WEEKLY;BYMONTH=2",
         ["2027-02-06 09:00:00", "2027-02-13 09:00:00", "2027-02-20 09:00:00"]),
        ("DTSTART:20260101T090000 RRULE:FREQ=MONTHLY;BYDAY=-2FR;BYMONTHDAY=17",
         ["2026-04-17 09:00:00", "2027-09-17 09:00:00", "2028-11-17 09:00:00"]),
        ("DTSTART:20260131T090000 RRULE:FREQ=MONTHLY",
         ["2026-03-31 09:00:00", "2026-05-31 09:00:00", "2026-07-31 09:00:00"]),
        ("DTSTART:20260301T090000 RRULE:FREQ=DAILY;COUNT=5", ["2026-03-05 09:00:00"]),
        ("DTSTART;TZID=UTC:20260301T090000Z RRULE:FREQ=DAILY;UNTIL=20260306T090000Z",
         ["2026-03-05 09:00:00", "2026-03-06 09:00:00"]),
        ("dtstart:20260301T090000 rrule:freq=daily;byhour=9,18;byminute=0,30",
         ["2026-03-04 18:00:00", "2026-03-04 18:30:00", "2026-03-05 09:00:00"]),
    ],
)  # fmt: skip
def test_it_fires_at(text: str, fires: list[str]) -> None:
    assert next_of(text) == fires


@pytest.mark.parametrize(
    ("text", "since", "expected"),
    [
        ("DTSTART:19000107T090000 RRULE:FREQ=DAILY", datetime(2026, 3, 4, tzinfo=UTC), "2026-03-04"),
        ("DTSTART:20000107T090000 RRULE:FREQ=WEEKLY", datetime(2100, 1, 2, tzinfo=UTC), "2100-01-08"),
        ("DTSTART:20000107T090000 RRULE:FREQ=YEARLY", datetime(2199, 12, 31, tzinfo=UTC), "2200-01-07"),
        ("DTSTART:20000229T090000 RRULE:FREQ=YEARLY", datetime(2096, 3, 1, tzinfo=UTC), "2104-02-29"),
        ("DTSTART:20000107T090000 RRULE:FREQ=YEARLY", datetime(8899, 12, 31, tzinfo=UTC), "8900-01-07"),
    ],
)
def test_rule_without_an_end_goes_on(text: str, since: datetime, expected: str) -> None:
    fire = Spec.parse(text).after(since)
    assert fire is not None
    assert f"{fire:%Y-%m-%d}" == expected


@pytest.mark.parametrize(
    "text",
    [
        "DTSTART:20000107T090000 RRULE:FREQ=DAILY;COUNT=5",
        "DTSTART:20000107T090000 RRULE:FREQ=DAILY;UNTIL=20010101T000000",
        "DTSTART:20260101T090000 RRULE:FREQ=DAILY;INTERVAL=1000000;UNTIL=20270101T000000",
    ],
)
def test_ended_rule_has_no_next_fire(text: str) -> None:
    assert Spec.parse(text).after(NOW) is None


def test_a_zone_shifts_it() -> None:
    assert Spec.parse("0 9 * * *", "Asia/Kolkata").after(NOW) == datetime(2026, 3, 5, 3, 30, tzinfo=UTC)


def test_every_so_often_can_be_anchored_and_begins_there() -> None:
    anchor = NOW + timedelta(minutes=7, microseconds=5)
    spec = Spec.parse("@every 10m", anchor=anchor)
    assert spec.between(NOW, NOW + timedelta(minutes=30), None) == [
        anchor + timedelta(minutes=10 * n) for n in (0, 1, 2)
    ]


def test_equal_schedules_are_equal() -> None:
    assert Spec.parse("@daily", "Asia/Tokyo") == Spec.parse(" @daily ", "Asia/Tokyo") != Spec.parse("@daily")
    assert len({Spec.parse("@daily"), Spec.parse("@daily")}) == 1


texts = st.sampled_from(
    [
        "* * * * *",
        "*/7 3-5 * * *",
        "0 0 31 * *",
        "30 2 * * *",
        "*/20 * 12 * * 1-5",
        "@every 47s",
        "@every 3d",
        "@weekly",
    ]
)
zones = st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/St_Johns", "Pacific/Apia"])
instants = st.datetimes(datetime(1995, 1, 1), datetime(2060, 1, 1), timezones=st.just(UTC))


@given(texts, zones, instants)
def test_fires_strictly_increase_and_each_is_the_next_of_the_one_before(
    text: str, zone: str, start: datetime
) -> None:
    spec = Spec.parse(text, zone)
    fires = spec.between(start, start + timedelta(days=3650), 20)
    assert all(a < b for a, b in pairwise([start, *fires]))
    assert all(spec.after(a) == b for a, b in pairwise([start, *fires]))
    assert all(fire.tzinfo is UTC for fire in fires)
    assert all(spec.after(fire - timedelta(microseconds=1)) == fire for fire in fires[:3])


@given(texts, zones, instants, st.integers(0, 30 * 86_400), st.integers(0, 50))
def test_the_latest_are_the_end_of_all(
    text: str, zone: str, start: datetime, length: int, count: int
) -> None:
    spec = Spec.parse(text, zone)
    end = start + timedelta(seconds=min(length, 200_000))
    everything = spec.between(start, end, None)
    assert spec.latest(start, end, count) == everything[len(everything) - min(count, len(everything)) :]


def test_between_stops_at_its_cap_and_includes_its_end() -> None:
    spec = Spec.parse("* * * * *")
    assert len(spec.between(NOW, NOW + timedelta(days=1000), 5)) == 5
    end = datetime(2026, 3, 4, 10, 22, tzinfo=UTC)
    assert spec.between(end - timedelta(minutes=1), end, 5) == [end]
    assert spec.between(end, end - timedelta(minutes=1), 5) == []


def test_an_instant_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a zone"):
        Spec.parse("@daily").after(datetime(2026, 1, 1))


def test_the_calendar_ends_in_the_year_9999() -> None:
    end = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    for text in ("@daily", "* * * * *", "@every 1d", "30 2 * * *"):
        assert Spec.parse(text, "America/New_York").after(end) is None


# --- refusals


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("30 2 30 2 *", "day-of-month is wrong at character 6: no day 30 in FEB", None),
        ("0 0 31 2,4,6,9,11 *", "day-of-month is wrong at character 5: no day 31 in FEB, APR, JUN, SEP, NOV", None),
        ("0 0 30-31 2 */2", "no day 30 in FEB", None),
        ("60 * * * *", "minute is wrong at character 1: 60 is not between 0 and 59", None),
        ("* 24 * * *", "hour is wrong at character 3: 24 is not between 0 and 23", "Midnight is hour 0."),
        ("* * 0 * *", "day-of-month is wrong at character 5: 0 is not between 1 and 31", None),
        ("* * * 13 *", "month is wrong at character 7: 13 is not between 1 and 12", None),
        ("* * * * 8", "day-of-week is wrong at character 9: 8 is not between 0 and 7", None),
        ("60 * * * * *", "second is wrong at character 1: 60 is not between 0 and 59", None),
        ("0  0   * * MOO", "day-of-week is wrong at character 12: 'MOO' is not 0-7 or SUN-SAT", None),
        ("* * * FEBR *", "month is wrong at character 7: 'FEBR' is not 1-12 or JAN-DEC", None),
        ("1,2,x * * * *", "minute is wrong at character 5: 'x' is not 0-59".replace("'x'", "'X'"), None),
        ("1,,2 * * * *", "minute is wrong at character 3: a value is missing", None),
        ("5- * * * *", "minute is wrong at character 3: a value is missing", None),
        ("-5 * * * *", "minute is wrong at character 1: a value is missing", None),
        ("* * * * FRI-MON", "the range FRI-MON runs backwards", "Write two: FRI-6,0-MON."),
        ("* * * * 7-2", "the range 7-2 runs backwards", "Write 0-2."),
        ("* 22-2 * * *", "hour is wrong at character 3: the range 22-2 runs backwards", "Write two: 22-23,0-2."),
        ("*/0 * * * *", "minute is wrong at character 3: the step '0'", None),
        ("*/x * * * *", "minute is wrong at character 3: the step 'X'", None),
        ("*/ * * * *", "minute is wrong at character 3: the step ''", None),
        ("*/90 * * * *", "the step 90 is larger than the number of values, 60", "`@every 90m`"),
        ("* */36 * * *", "the step 36 is larger than the number of values, 24", "`@every 36h`"),
        ("? * * * *", "minute is wrong at character 1: '?' is not 0-59", "Write `*` for any."),
        ("* * L/2 * *", "day-of-month is wrong at character 5", None),
        ("* * 15W * *", "day-of-month is wrong at character 5: '15W' is not 1-31", None),
        ("* * * * FRI#6", "day-of-week is wrong at character 13: '6' is not between 1 and 5", None),
        ("* * * * FRIL", "'FRIL' has no number before the L", "The last Friday is 5L."),
        ("* * * * 9L", "9 is not between 0 and 7", None),
        ("٣ * * * *", "minute is wrong at character 1", None),
        ("", "has 0 fields, not five or six", "minute hour day-of-month"),
        ("* * * *", "has 4 fields", None),
        ("0 0 * * * * 2030", "has 7 fields", None),
        ("@reboot", "Schedule '@reboot': this word names no schedule", "let the process start this work"),
        ("@dayly", "Schedule '@dayly': this word names no schedule", "@daily"),
        ("@every", "Schedule '@every': this word names no schedule", "@every 90s"),
        ("@every 5 parsecs", "the period is not a duration", "1h30m"),
        ("@every 10ms", "the period is shorter than a second", "@every 1s"),
        ("@every 0s", "the period is shorter than a second", None),
        ("at", "has 1 fields", None),
        ("at noon", "'noon' is not an instant", "at 2030-01-31T09:00"),
        ("at 2026-02-30T09:00", "'2026-02-30T09:00' is not an instant: day is out of range", None),
        ("RRULE:FREQ=DAILY", "it is not a DTSTART and an RRULE", "DTSTART:"),
        ("FREQ=DAILY", "it is not a DTSTART and an RRULE", "DTSTART:"),
        ("DTSTART:20260101 RRULE:FREQ=DAILY", "DTSTART '20260101' is not a time", "20300107T090000"),
        ("DTSTART:18991231T0900 RRULE:FREQ=DAILY", "DTSTART is before the year 1900", "Begin it later"),
        ("DTSTART:20260101T0900 RRULE:FREQ=HOURLY", "FREQ is not one of DAILY", "@every"),
        ("DTSTART:20260101T0900 RRULE:INTERVAL=2", "FREQ is not one of DAILY", None),
        ("DTSTART:20260101T0900 RRULE:FREQ=DAILY;BYDOY=1", "there is no 'BYDOY=1' in a rule", "BYDAY"),
        ("DTSTART:20260101T0900 RRULE:FREQ=DAILY;FREQ=WEEKLY", "FREQ is given twice", None),
        ("DTSTART:20260101T0900 RRULE:FREQ=DAILY;INTERVAL=0", "INTERVAL '0' is not a number of at least 1", None),
        ("DTSTART:20260101T0900 RRULE:FREQ=DAILY;COUNT=-1", "COUNT '-1' is not a number of at least 1", None),
        ("DTSTART:20260101T0900 RRULE:FREQ=DAILY;COUNT=2;UNTIL=20270101T0000", "exclude each other", None),
        ("DTSTART:20260101T0900 RRULE:FREQ=DAILY;UNTIL=20270101", "UNTIL '20270101' is not a time", None),
        ("DTSTART:20260101T0900 RRULE:FREQ=DAILY;UNTIL=20250101T0000", "it never fires", None),
        ("DTSTART:20260101T0900 RRULE:FREQ=WEEKLY;BYDAY=XX", "BYDAY", None),
        ("DTSTART:20260101T0900 RRULE:FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30;COUNT=3", "it never fires", None),
        ("DTSTART:20260105T0900 RRULE:FREQ=DAILY;INTERVAL=7;BYDAY=TU", "it never fires", None),
        ("DTSTART:20260105T0900 RRULE:FREQ=MONTHLY;BYDAY=MO;BYSETPOS=6", "it never fires", None),
        ("DTSTART:20260131T0900 RRULE:FREQ=MONTHLY;BYMONTH=2", "it never fires", None),
        ("DTSTART:20260131T0900 RRULE:FREQ=YEARLY;BYMONTH=2", "it never fires", None),
        ("DTSTART:20260105T0900 RRULE:FREQ=WEEKLY;BYDAY=2FR", "BYDAY with a number needs FREQ=MONTHLY", None),
        ("DTSTART:20260105T0900 RRULE:FREQ=DAILY;BYSETPOS=6", "BYSETPOS needs FREQ=MONTHLY or YEARLY", None),
        ("DTSTART;TZID=Asia/Tokyo:20260101T0900 RRULE:FREQ=DAILY", "TZID is Asia/Tokyo", "Leave TZID out."),
        ("DTSTART:20260101T0900 RRULE:FREQ=DAILY;BYHOUR=1,2,3;BYMINUTE=" + ",".join(map(str, range(60))),
         "it fires 180 times a day", "cron"),
    ],
)  # fmt: skip
def test_a_wrong_spec_is_refused_with_its_place_and_reason(text: str, message: str, hint: str | None) -> None:
    with pytest.raises(DefinitionError) as refused:
        Spec.parse(text)
    assert message in refused.value.message
    assert (
        text.strip() in refused.value.message.encode().decode("unicode_escape")
        or repr(text) in refused.value.message
    )
    if hint:
        assert hint in (refused.value.hint or "")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("europe/berlin", "'Europe/Berlin'"),
        ("Berlin", "'Europe/Berlin'"),
        ("new york", "'America/New_York'"),
        ("Europe/Berlim", "'Europe/Berlin'"),
        ("UTC+2", "'Etc/GMT-2'"),
        ("gmt-03:00", "'Etc/GMT+3'"),
        ("Mars/Olympus", "IANA"),
        ("../../etc/passwd", "IANA"),
        ("localtime", "IANA"),
        ("posixrules", "IANA"),
        ("", "IANA"),
    ],
)
def test_an_unknown_zone_is_refused_with_a_suggestion(name: str, meant: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        Spec.parse("@daily", name)
    assert refused.value.message == f"There is no time zone {name!r}."
    assert meant in (refused.value.hint or "")


def test_leap_second_zones_are_no_zones() -> None:
    with pytest.raises(DefinitionError):
        find_zone("right/Europe/Berlin")


TERMS = (
    "* 0 1 5 7 8 12 23 24 31 32 59 60 L LW 5L FRIL W ? JAN FEB SUN FRI SAT - / # , 1-5 5-1 */2 */5 1/2 FRI#2 1#6 "
    "*/99 x"
)
fields = st.lists(st.sampled_from(TERMS.split()), min_size=1, max_size=3).map("".join)


def cronsim_takes(text: str) -> bool:
    try:
        CronSim(text, datetime(2026, 1, 1))
    except CronSimError:
        return False
    return True


def our_refusal(text: str) -> str | None:
    try:
        Spec.parse(text)
    except DefinitionError as error:
        return error.message
    return None


@given(st.lists(fields, min_size=5, max_size=6).map(" ".join))
def test_accepted_specs_are_valid_for_cronsim(text: str) -> None:
    refusal = our_refusal(text)
    if refusal is None:
        assert cronsim_takes(text)
    elif cronsim_takes(text):
        # a step that leaves only the first value, a step after L, a date that never comes
        assert "the step " in refusal or "never fires" in refusal or "L/" in text, refusal
