"""Cron expressions. cronsim finds the local times that match, and `zones` converts them to instants where the clocks
change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim

from penstock.errors import DefinitionError
from penstock.language.schedules.cron_fields import parse_fields, values_written_out
from penstock.language.schedules.due import Due
from penstock.language.schedules.zones import first_instant, next_change, offset_at, wall

WORDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_LONG_AGO = datetime(2000, 1, 1)
_SECOND = timedelta(seconds=1)


def parse_cron(text: str, zone: ZoneInfo) -> Callable[[datetime], Iterator[Due]]:
    """Return a function that yields the due instants after an instant, in order. Raises DefinitionError that names
    field, position and reason."""
    fields = parse_fields(WORDS.get(text.lower(), text))
    expression = " ".join(values_written_out(fields))
    if next(_times(expression, _LONG_AGO), None) is None:
        raise DefinitionError(f"Schedule {text!r} never fires: no date fits it.")
    interval = any(field.startswith("*") for field in fields[:-3])  # seconds if present, minutes, hours
    walk = _interval if interval else _fixed
    return lambda since: walk(expression, zone, since)


def _times(expression: str, since: datetime) -> Iterator[datetime]:
    """Yield the times after `since` that match, on a clock that never changes. Ends if there is none in 50 years."""
    return CronSim(expression, since)


def _fixed(expression: str, zone: ZoneInfo, since: datetime) -> Iterator[Due]:
    """Yield each matching time once. A time in a gap is due when the gap ends, and a time that comes twice is due the
    first time.

    Several times in one gap are one fire, as a schedule has at most one fire an instant.
    """
    for time in _times(expression, wall(since, zone)):
        instant = first_instant(time, zone)
        if instant > since:
            since = instant
            yield Due(instant, time)


def _interval(expression: str, zone: ZoneInfo, since: datetime) -> Iterator[Due]:
    """Yield each instant at which the wall clock shows a matching time.

    Between two changes of the clocks, local time runs in step with UTC. So yield the matching times until the next
    change, then start again from the local time after it.
    """
    wall_time, searched = wall(since, zone), since
    while True:
        offset, change = offset_at(searched, zone), None
        for time in _times(expression, wall_time):
            instant = (time - offset).replace(tzinfo=UTC)
            change = next_change(searched, instant, zone)
            if change is not None:
                break
            searched = instant
            yield Due(instant)
        if change is None:
            return
        wall_time, searched = (
            wall(change, zone) - _SECOND,
            change,
        )  # include the instant of the change itself
