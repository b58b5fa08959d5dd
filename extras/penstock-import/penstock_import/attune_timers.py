"""The conversion of the timers of Attune's core pack to the times of schedules.

Attune's cron expressions begin with seconds and are in UTC. If both day fields are restricted, both have to match.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from penstock.errors import DefinitionError
from penstock.language.schedules.rrule import parse_rrule
from penstock_import.cron_times import RANGES, CronTimes, schedule_of
from penstock_import.wanted_text import NotMapped

TIMERS = frozenset({"core.intervaltimer", "core.crontimer", "core.datetimetimer", "core.rruletimer"})
_UNITS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86_400}
_FIELDS = ("second", "minute", "hour", "day", "month", "weekday")
_WORDS = {
    "month": ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"),
    "weekday": ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"),
}
_TERM = re.compile(r"(?:(?P<any>[*?])|(?P<first>\w+)(?:-(?P<last>\w+))?)(?:/(?P<step>\d+))?")
_PARTS = {
    "by_day": "BYDAY",
    "by_month_day": "BYMONTHDAY",
    "by_month": "BYMONTH",
    "by_year_day": "BYYEARDAY",
    "by_week_no": "BYWEEKNO",
    "by_hour": "BYHOUR",
    "by_minute": "BYMINUTE",
    "by_second": "BYSECOND",
    "by_set_pos": "BYSETPOS",
}


def timing(trigger: str, parameters: Any) -> dict[str, Any]:
    """Return the times of a schedule for a timer with these parameters. Raises NotMapped for a part without an
    equivalent in Penstock."""
    times = parameters if isinstance(parameters, Mapping) else {}
    match trigger:
        case "core.intervaltimer":
            return _interval(times)
        case "core.crontimer":
            return _cron(times)
        case "core.datetimetimer":
            _only(times, "fire_at")
            return {"at": _instant(times.get("fire_at")).isoformat()}
        case _:
            return _recurrence(times)


def _only(times: Mapping[str, Any], *names: str) -> None:
    unknown = sorted(str(name) for name in times.keys() - set(names))
    if unknown:
        raise NotMapped(f"{', '.join(unknown)} of a timer")


def _interval(times: Mapping[str, Any]) -> dict[str, Any]:
    _only(times, "unit", "interval")
    unit, interval = times.get("unit", "seconds"), times.get("interval")
    if unit not in _UNITS or isinstance(interval, bool) or not isinstance(interval, int) or interval < 1:
        raise NotMapped(f"an interval of {interval} {unit}")
    return {"every": interval * _UNITS[unit]}


def _cron(times: Mapping[str, Any]) -> dict[str, Any]:
    _only(times, "expression", "timezone")
    if times.get("timezone", "UTC") != "UTC":
        raise NotMapped(f"the zone {times['timezone']}, which Attune ignores in favour of UTC")
    fields = str(times.get("expression")).split()
    if len(fields) == 5:
        raise NotMapped(
            "an expression of five fields, which Attune refuses: it requires a field of seconds at the start"
        )
    if len(fields) != len(_FIELDS):
        raise NotMapped(f"the expression {times.get('expression')}")
    numbers = {name: _numbers(name, text) for name, text in zip(_FIELDS, fields, strict=True)}
    second, minute, hour, day, month, weekday = (numbers[name] for name in _FIELDS)
    return schedule_of(CronTimes(minute, hour, day, month, weekday, second))


def _numbers(field: str, text: str) -> frozenset[int]:
    lowest, highest = RANGES[field]
    numbers: set[int] = set()
    for term in text.upper().split(","):
        match = _TERM.fullmatch(term)
        if match is None:
            raise NotMapped(f"{term} as the {field} of a timer")
        first = lowest if match["any"] else _number(field, match["first"])
        last = highest if match["any"] else _number(field, match["last"] or match["first"])
        if match["step"] and match["last"] is None and not match["any"]:
            raise NotMapped(f"{term} as the {field} of a timer")
        step = int(match["step"] or 1)
        top = 7 if field == "weekday" else highest
        if not lowest <= first <= last <= top or step < 1:
            raise NotMapped(f"{term} as the {field} of a timer")
        numbers |= {number % 7 if field == "weekday" else number for number in range(first, last + 1, step)}
    return frozenset(numbers)


def _number(field: str, text: str) -> int:
    if text.isdigit():
        return int(text)
    words = _WORDS.get(field, ())
    if text[:3] not in words:
        raise NotMapped(f"{text} as the {field} of a timer")
    return words.index(text[:3]) + RANGES[field][0]


def _recurrence(times: Mapping[str, Any]) -> dict[str, Any]:
    _only(times, "rule", "freq", "interval", "count", "until", "week_start", "dtstart", "timezone", *_PARTS)
    try:
        zone = ZoneInfo(str(times.get("timezone", "UTC")))
    except (ZoneInfoNotFoundError, ValueError):
        raise NotMapped(f"the zone {times.get('timezone')}") from None
    start = _instant(times.get("dtstart")).astimezone(zone)
    rule = str(times.get("rule") or "").strip().removeprefix("RRULE:").strip() or _rule_of(times)
    text = f"DTSTART:{start:%Y%m%dT%H%M%S} RRULE:{rule}"
    try:
        parse_rrule(text, zone)
    except DefinitionError as error:
        raise NotMapped(str(error)) from None
    return {"rrule": text} | ({"timezone": zone.key} if zone.key != "UTC" else {})


def _rule_of(times: Mapping[str, Any]) -> str:
    if times.get("until") is not None:
        raise NotMapped("`until` of a recurrence")
    parts = {"FREQ": times.get("freq"), "INTERVAL": times.get("interval"), "COUNT": times.get("count")}
    for name, ours in _PARTS.items():
        values = times.get(name)
        if values:
            parts[ours] = ",".join(map(str, values)) if isinstance(values, list) else values
    parts["WKST"] = times.get("week_start")
    return ";".join(f"{name}={str(value).upper()}" for name, value in parts.items() if value is not None)


def _instant(value: Any) -> datetime:
    try:
        instant = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        raise NotMapped(f"the instant {value}, which is not in ISO 8601") from None
    if instant.tzinfo is None:  # PyYAML reads a timestamp with Z as UTC, but returns it without a zone
        if not isinstance(value, datetime):
            raise NotMapped(f"the instant {value}, which has no zone")
        instant = instant.replace(tzinfo=UTC)
    return instant
