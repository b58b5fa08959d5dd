"""The conversion of StackStorm timers, which are triggers of APScheduler, to the times of our schedules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from penstock_import.cron_times import CronTimes, everything, schedule_of
from penstock_import.wanted_text import NotMapped

_UNITS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86400, "weeks": 604800}
_FIELDS = ("year", "month", "day", "week", "day_of_week", "hour", "minute", "second")
"""The fields from the most to the least significant."""
_OURS = {"month": "month", "day": "day", "hour": "hour", "minute": "minute", "second": "second"}
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_TERM = re.compile(r"(?:\*|(?P<first>\d+)(?:-(?P<last>\d+))?)(?:/(?P<step>\d+))?")
_WORDS = re.compile(r"(?P<first>[a-z]{3})(?:-(?P<last>[a-z]{3}))?", re.IGNORECASE)
_POSITION = re.compile(r"(?P<nth>1st|2nd|3rd|4th|5th|last) +(?P<day>[a-z]{3})", re.IGNORECASE)


def timer(kind: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schedule times for a timer. Raises NotMapped for a part without an equivalent in Penstock."""
    zone = parameters.get("timezone")
    remainder = {
        name: value for name, value in parameters.items() if value is not None and name != "timezone"
    }
    if kind == "core.st2.IntervalTimer":
        unit, delta = remainder.pop("unit", None), remainder.pop("delta", None)
        if (
            unit not in _UNITS
            or isinstance(delta, bool)
            or not isinstance(delta, int)
            or delta < 1
            or remainder
        ):
            raise NotMapped(f"an interval of {delta} {unit}{_beside(remainder)}")
        return {"every": delta * _UNITS[unit]}
    if kind == "core.st2.DateTimer":
        instant = remainder.pop("date", None)
        if isinstance(instant, datetime | date):
            instant = instant.isoformat()
        if not isinstance(instant, str) or remainder:
            raise NotMapped(f"the date {instant}{_beside(remainder)}")
        try:
            written = datetime.fromisoformat(instant)
        except ValueError:
            raise NotMapped(f"the date {instant}, which is not in ISO 8601") from None
        at = {"at": written.isoformat()}
        return at | ({"timezone": zone} if zone is not None and written.tzinfo is None else {})
    if kind == "core.st2.CronTimer":
        return schedule_of(cron_times(remainder)) | ({"timezone": zone} if zone is not None else {})
    raise NotMapped(f"a timer of the kind {kind}")


def is_over(times: Mapping[str, Any]) -> bool:
    """Return whether the times of a schedule are a single instant that is past. An unknown zone counts as UTC."""
    if "at" not in times:
        return False
    instant = datetime.fromisoformat(times["at"])
    if instant.tzinfo is None:
        try:
            instant = instant.replace(tzinfo=ZoneInfo(str(times.get("timezone", "UTC"))))
        except (ValueError, ZoneInfoNotFoundError):
            instant = instant.replace(tzinfo=UTC)
    return instant < datetime.now(UTC)


def _beside(remainder: Mapping[str, Any]) -> str:
    return f" with {', '.join(sorted(remainder))}" if remainder else ""


def cron_times(parameters: Mapping[str, Any]) -> CronTimes:
    """Return the times of APScheduler's CronTrigger. An omitted field means "any" if a less significant field is set,
    and its lowest value otherwise. Raises NotMapped for a part without an equivalent in Penstock."""
    unknown = parameters.keys() - set(_FIELDS)
    if unknown:
        raise NotMapped(f"{', '.join(sorted(map(str, unknown)))} of a CronTimer")
    supplied = [field for field in _FIELDS if field in parameters]
    smallest = _FIELDS.index(supplied[-1]) if supplied else -1
    values: dict[str, Any] = {}
    for place, field in enumerate(_FIELDS):
        if field in parameters:
            values[field] = str(parameters[field]).strip()
        elif place < smallest or not supplied or field in ("week", "day_of_week"):
            values[field] = "*"
        else:
            values[field] = str(_lowest(field))
    if not supplied:
        values["second"] = "*"
    for field in ("year", "week"):
        if values[field] != "*":
            raise NotMapped(f"the {field} of a CronTimer")
    special_day = "L" if values["day"].lower() == "last" else ""
    special_weekday = "" if special_day else _position(values["day"])
    return CronTimes(
        minute=_numbers("minute", values["minute"]),
        hour=_numbers("hour", values["hour"]),
        day=everything("day") if special_day or special_weekday else _numbers("day", values["day"]),
        month=_numbers("month", values["month"]),
        weekday=_weekdays(values["day_of_week"]),
        second=_numbers("second", values["second"]),
        special_day=special_day,
        special_weekday=special_weekday,
    )


def _lowest(field: str) -> int:
    return 1 if field in ("month", "day") else 0


def _position(text: str) -> str:
    match = _POSITION.fullmatch(text)
    if match is None:
        return ""
    day = (_WEEKDAYS.index(match["day"].lower()) + 1) % 7 if match["day"].lower() in _WEEKDAYS else -1
    if day < 0:
        raise NotMapped(f"the day {text}")
    return f"{day}L" if match["nth"].lower() == "last" else f"{day}#{match['nth'][0]}"


def _numbers(field: str, text: str) -> frozenset[int]:
    numbers: set[int] = set()
    low, high = min(everything(field)), max(everything(field))
    for term in text.split(","):
        numbers |= _term(field, term.strip(), low, high, _MONTHS if field == "month" else ())
    return frozenset(numbers)


def _weekdays(text: str) -> frozenset[int]:
    """Return the weekdays with Sunday as 0. In APScheduler Monday is 0."""
    numbers: set[int] = set()
    for term in text.split(","):
        numbers |= _term("day_of_week", term.strip(), 0, 6, _WEEKDAYS)
    return frozenset((number + 1) % 7 for number in numbers)


def _term(field: str, term: str, low: int, high: int, words: tuple[str, ...]) -> set[int]:
    named = _WORDS.fullmatch(term)
    if named is not None and words:
        first, last = named["first"].lower(), (named["last"] or named["first"]).lower()
        if first not in words or last not in words or words.index(first) > words.index(last):
            raise NotMapped(f"{term} of the {field}")
        return set(range(words.index(first) + low, words.index(last) + low + 1))
    match = _TERM.fullmatch(term)
    if match is None:
        raise NotMapped(f"{term} of the {field}")
    step = int(match["step"] or 1)
    first = int(match["first"]) if match["first"] is not None else low
    last = (
        int(match["last"])
        if match["last"] is not None
        else high
        if match["first"] is None or match["step"]
        else first
    )
    if not (low <= first <= last <= high) or step < 1 or step > high - low:
        raise NotMapped(f"{term} of the {field}")
    return set(range(first, last + 1, step))
