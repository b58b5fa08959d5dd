"""The conversion of other schedulers' times. The times are parsed into sets of numbers, and written as a cron
expression. If both day fields are restricted, they become a recurrence rule, since cron would match either day."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from penstock_import.wanted_text import NotMapped

RANGES = {
    "second": (0, 59),
    "minute": (0, 59),
    "hour": (0, 23),
    "day": (1, 31),
    "month": (1, 12),
    "weekday": (0, 6),
}
"""The lowest and the highest number of each field; weekday 0 is Sunday."""
_DAYS = ("SU", "MO", "TU", "WE", "TH", "FR", "SA")
_MOST_A_DAY = 96
"""The maximum number of fires of a recurrence rule in a day, as in our own rules."""
_MAX_TERMS = 60


@dataclass(frozen=True, slots=True)
class CronTimes:
    """The matching numbers of each field. A time matches if all fields do. `special` is a day that is not a number:
    `L`, `FRI#2`, `5L`, in our notation."""

    minute: frozenset[int]
    hour: frozenset[int]
    day: frozenset[int]
    month: frozenset[int]
    weekday: frozenset[int]
    second: frozenset[int] = frozenset({0})
    special_day: str = ""
    special_weekday: str = ""


def schedule_of(times: CronTimes) -> dict[str, Any]:
    """Return `cron` or `rrule` of a schedule. Raises NotMapped for times that never come, or that no schedule can
    describe."""
    any_day = times.day == everything("day") and not times.special_day
    any_weekday = times.weekday == everything("weekday") and not times.special_weekday
    if not times.minute or not times.hour or not times.month:
        raise NotMapped("a time that never comes")
    if (times.special_weekday and times.weekday != everything("weekday")) or (
        times.special_weekday and times.day != everything("day")
    ):
        raise NotMapped("a day of the month and a day of the week, of which one is not a number")
    if any_day or any_weekday:
        day = times.special_day or ("*" if any_day else _field("day", times.day))
        weekday = times.special_weekday or ("*" if any_weekday else _field("weekday", times.weekday))
        fields = [
            _field("minute", times.minute),
            _field("hour", times.hour),
            day,
            _field("month", times.month),
            weekday,
        ]
        if times.second != frozenset({0}):
            fields.insert(0, _field("second", times.second))
        return {"cron": " ".join(fields)}
    if times.special_day or times.special_weekday:
        raise NotMapped("a day of the month and a day of the week, of which one is not a number")
    return {"rrule": _rule(times)}


def everything(field: str) -> frozenset[int]:
    lowest, highest = RANGES[field]
    return frozenset(range(lowest, highest + 1))


def _rule(times: CronTimes) -> str:
    if len(times.minute) * len(times.hour) * len(times.second) > _MOST_A_DAY:
        raise NotMapped("both days, and more than 96 times a day")
    parts = {
        "BYMONTH": times.month,
        "BYMONTHDAY": times.day,
        "BYHOUR": times.hour,
        "BYMINUTE": times.minute,
        "BYSECOND": times.second,
    }
    written = [f"{name}={_joined(sorted(numbers))}" for name, numbers in parts.items()]
    if times.month == everything("month"):
        written = [part for part in written if not part.startswith("BYMONTH=")]
    days = ",".join(_DAYS[number] for number in sorted(times.weekday))
    return f"DTSTART:20000101T000000 RRULE:FREQ=DAILY;BYDAY={days};{';'.join(written)}"


def _field(name: str, numbers: Collection[int]) -> str:
    """Return a field of a cron expression: a star, a step from the lowest number, or numbers and ranges."""
    lowest, highest = RANGES[name]
    if set(numbers) == set(range(lowest, highest + 1)):
        return "*"
    for step in range(2, highest - lowest + 1):
        if (
            name not in ("day", "weekday")
            and set(numbers) == set(range(lowest, highest + 1, step))
            and len(numbers) > 1
        ):
            return f"*/{step}"
    return ",".join(_ranges(sorted(numbers)))


def _ranges(numbers: list[int]) -> Iterable[str]:
    start = previous = numbers[0]
    for number in [*numbers[1:], -1]:
        if number == previous + 1:
            previous = number
            continue
        if previous - start < 2:
            yield from (str(value) for value in range(start, previous + 1))
        else:
            yield f"{start}-{previous}"
        start = previous = number


def _joined(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))
