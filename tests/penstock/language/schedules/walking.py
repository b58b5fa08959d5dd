"""The oracle: a wall clock that is looked at every real minute, as cron(8) does. It shares no code with ours."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
Walk = list[tuple[datetime, datetime]]
"""Each real minute, with what the wall clock shows."""


@lru_cache
def changes(zone: str, first_year: int, last_year: int) -> tuple[datetime, ...]:
    """The hours within which the zone's offset changes."""
    at, end = datetime(first_year, 1, 1, tzinfo=UTC), datetime(last_year + 1, 1, 1, tzinfo=UTC)
    found = []
    before = at.astimezone(ZoneInfo(zone)).utcoffset()
    while at < end:
        at += timedelta(hours=1)
        offset = at.astimezone(ZoneInfo(zone)).utcoffset()
        if offset != before:
            found.append(at)
        before = offset
    return tuple(found)


def walk(zone: str, start: datetime, end: datetime) -> Walk:
    info = ZoneInfo(zone)
    minutes = int((end - start) / MINUTE) + 1
    instants = [start + n * MINUTE for n in range(minutes)]
    return [(at, at.astimezone(info).replace(tzinfo=None, fold=0)) for at in instants]


def numbers(field: str, low: int, high: int) -> frozenset[int]:
    found: set[int] = set()
    for term in field.split(","):
        base, _, step = term.partition("/")
        first, dash, last = base.partition("-")
        span = (
            (low, high) if base == "*" else (int(first), int(last) if dash else high if step else int(first))
        )
        found |= set(range(span[0], span[1] + 1, int(step or 1)))
    return frozenset(found)


@dataclass(frozen=True)
class Clockwork:
    """An expression of plain numbers whose day fields are not both restricted."""

    expression: str

    def __post_init__(self) -> None:
        minute, hour, day, month, weekday = self.expression.split()
        minutes, hours = numbers(minute, 0, 59), numbers(hour, 0, 23)
        days, months = numbers(day, 1, 31), numbers(month, 1, 12)
        weekdays = frozenset(n % 7 for n in numbers(weekday, 0, 7))
        object.__setattr__(self, "sets", (minutes, hours, days, months, weekdays))
        object.__setattr__(self, "fixed", not minute.startswith("*") and not hour.startswith("*"))

    def fits(self, shown: datetime) -> bool:
        minutes, hours, days, months, weekdays = self.sets  # type: ignore[attr-defined]
        return (
            shown.minute in minutes
            and shown.hour in hours
            and shown.day in days
            and shown.month in months
            and shown.isoweekday() % 7 in weekdays
        )

    def fires(self, walk: Walk) -> list[datetime]:
        """Return the instants of its fires during the walk. A fixed-time job looks at every minute of the wall clock once.
        It looks at skipped minutes as soon as the clock has jumped, and at repeated ones not again."""
        if not self.fixed:  # type: ignore[attr-defined]
            return [at for at, shown in walk if self.fits(shown)]
        found = []
        latest = walk[0][1] - MINUTE
        for at, shown in walk:
            due = False
            while latest < shown:
                latest += MINUTE
                due = self.fits(latest) or due
            if due:
                found.append(at)
        return found
