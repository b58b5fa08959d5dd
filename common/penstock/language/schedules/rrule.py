"""Recurrence rules (RFC 5545, 3.3.10), daily or less often, evaluated by python-dateutil.

    DTSTART:20300107T090000 RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE

Times are local to the schedule's zone. Where the clocks change, they follow the rule for fixed times. The RFC would
leave out a time that falls into a gap, but a daily job must run each day.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

from penstock.errors import DefinitionError
from penstock.extras import needed
from penstock.language.schedules.due import Due
from penstock.language.schedules.zones import first_instant, wall

_FORM = re.compile(r"DTSTART(?:;TZID=(?P<zone>[^:]+))?:(?P<start>\S+)\s+RRULE:(?P<rule>\S+)", re.IGNORECASE)
_PARTS = {"FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYDAY", "BYMONTHDAY", "BYMONTH", "BYSETPOS"} | {
    "BYYEARDAY",
    "BYWEEKNO",
    "BYHOUR",
    "BYMINUTE",
    "BYSECOND",
}
_DAYS = ("BYDAY", "BYMONTHDAY", "BYYEARDAY", "BYWEEKNO")
_WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_FREQUENCIES = ("DAILY", "WEEKLY", "MONTHLY", "YEARLY")
_FIRST_YEAR = 1900
"""The first year of DTSTART. A search for the next instant begins there, at each start of a process."""
_CENTURY = 100
"""The years of a search, which ends with the century after the instant from which it searches. Without an end, a rule with no
further match would be searched up to the year 9999."""
_MOST_A_DAY = 96


def parse_rrule(text: str, zone: ZoneInfo) -> Callable[[datetime], Iterator[Due]]:
    """Return a function that yields the due instants after an instant, in order. Raises DefinitionError that names
    the part and the reason."""
    match = _FORM.fullmatch(text.strip())
    if match is None:
        hint = "Write DTSTART:20300107T090000 RRULE:FREQ=WEEKLY;BYDAY=MO."
        raise _wrong(text, "it is not a DTSTART and an RRULE", hint)
    if match["zone"] not in (None, zone.key):
        raise _wrong(text, f"TZID is {match['zone']}, the schedule's zone is {zone.key}", "Leave TZID out.")
    start = _local(text, "DTSTART", match["start"], zone).replace(microsecond=0)
    parts = _parts(text, match["rule"].upper())
    count = _whole(text, "COUNT", parts.pop("COUNT")) if "COUNT" in parts else None
    _whole(text, "INTERVAL", parts.get("INTERVAL", "1"))
    if start.year < _FIRST_YEAR:
        raise _wrong(
            text, f"DTSTART is before the year {_FIRST_YEAR}", "Begin it later, at an instant of the rule."
        )
    last = _local(text, "UNTIL", parts.pop("UNTIL"), zone) if "UNTIL" in parts else datetime.max

    @functools.lru_cache(maxsize=2)
    def rule_until(year: int) -> Any:
        """Return the rule with an end in a year at the latest. It caches its instants."""
        return _rule(parts, start).replace(until=min(last, datetime(min(year, 9999), 12, 31, 23, 59, 59)))

    try:
        rule = rule_until(_end_year(start))
        # A rule that never matches would be searched up to the year 9999. So first test the quick yearly rule.
        if (
            next(iter(_rule(_year_by_year(parts, start), start)), None) is None
            or next(iter(rule), None) is None
        ):
            raise _wrong(text, "it never fires: no date fits it")
    except (ValueError, TypeError, KeyError) as error:
        raise _wrong(text, str(error)) from None

    def walk(since: datetime) -> Iterator[Due]:
        wall_time = wall(since, zone)
        for time in islice(rule_until(_end_year(max(start, wall_time))), count):
            if time > wall_time and (instant := first_instant(time, zone)) > since:
                since = instant
                yield Due(instant, time)

    return walk


def _end_year(time: datetime) -> int:
    """Return the year with which the search for instants after `time` ends: the last one of the following century."""
    return (time.year // _CENTURY + 2) * _CENTURY - 1


def _rule(parts: Mapping[str, str], start: datetime) -> Any:
    written = ";".join(f"{name}={value}" for name, value in parts.items() if value)
    with needed():
        from dateutil.rrule import rrulestr
    return rrulestr(written, dtstart=start, cache=True)


def _year_by_year(parts: Mapping[str, str], start: datetime) -> dict[str, str]:
    """Return a yearly rule that matches all days of the rule in `parts`, and more days if INTERVAL or BYSETPOS leave
    some out.

    Days that the rule does not name come from DTSTART, by the rule's own frequency.
    """
    frequency = parts["FREQ"]
    fields = dict(parts)
    if frequency != "YEARLY" and not any(name in parts for name in _DAYS):
        fields |= {
            "DAILY": {"BYDAY": ",".join(_WEEKDAYS)},
            "WEEKLY": {"BYDAY": _WEEKDAYS[start.weekday()]},
            "MONTHLY": {"BYMONTHDAY": str(start.day)},
        }[frequency]
    # BYDAY=2FR counts within the month here, but within the year in a YEARLY rule without BYMONTH. So name all twelve
    # months.
    if frequency == "MONTHLY":
        fields.setdefault("BYMONTH", ",".join(map(str, range(1, 13))))
    return {**fields, "FREQ": "YEARLY", "INTERVAL": "1", "BYSETPOS": ""}


def _parts(text: str, rule: str) -> dict[str, str]:
    parts: dict[str, str] = {}
    for part in rule.split(";"):
        name, equals, value = part.partition("=")
        if name not in _PARTS or not equals or not value:
            raise _wrong(text, f"there is no {part!r} in a rule", f"Available: {', '.join(sorted(_PARTS))}.")
        if name in parts:
            raise _wrong(text, f"{name} is given twice")
        parts[name] = value
    if parts.get("FREQ") not in _FREQUENCIES:
        hint = "For more than one fire a day, use cron or @every."
        raise _wrong(text, f"FREQ is not one of {', '.join(_FREQUENCIES)}", hint)
    if "BYSETPOS" in parts and parts["FREQ"] in ("DAILY", "WEEKLY"):
        raise _wrong(text, "BYSETPOS needs FREQ=MONTHLY or YEARLY")
    if any(digit.isdigit() for digit in parts.get("BYDAY", "")) and parts["FREQ"] in ("DAILY", "WEEKLY"):
        raise _wrong(text, "BYDAY with a number needs FREQ=MONTHLY or YEARLY", "Leave the number out.")
    if "COUNT" in parts and "UNTIL" in parts:
        raise _wrong(text, "COUNT and UNTIL exclude each other")
    times = 1
    for name in ("BYHOUR", "BYMINUTE", "BYSECOND"):
        times *= len(parts.get(name, "0").split(","))
    if times > _MOST_A_DAY:
        raise _wrong(
            text, f"it fires {times} times a day, but the maximum is {_MOST_A_DAY}", "Use cron or @every."
        )
    return parts


def _local(text: str, name: str, value: str, zone: ZoneInfo) -> datetime:
    try:
        if "T" not in value.upper():
            raise ValueError
        at = datetime.fromisoformat(value)
        return wall(at, zone) if at.tzinfo else at
    except (ValueError, OverflowError):
        raise _wrong(text, f"{name} {value!r} is not a time", "Write it as 20300107T090000.") from None


def _whole(text: str, name: str, value: str) -> int:
    if not (value.isascii() and value.isdigit()) or not 1 <= int(value[:9]) <= 1_000_000:
        raise _wrong(text, f"{name} {value!r} is not a number of at least 1")
    return int(value)


def _wrong(text: str, reason: str, hint: str | None = None) -> DefinitionError:
    return DefinitionError(f"Schedule {text!r}: {reason}.", hint=hint)
