"""Time zones: their look-up by name, and the conversion between local time and instants."""

from __future__ import annotations

import re
from bisect import bisect_left
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from penstock.errors import DefinitionError

_NO_ZONES = {"localtime", "posixrules", "Factory"}
_OFFSET = re.compile(r"(?:UTC|GMT)(?P<sign>[+-])(?P<hours>\d{1,2})(?::?00)?", re.IGNORECASE)
_DAY = timedelta(days=1)
_SECOND = timedelta(seconds=1)


@lru_cache(maxsize=1024)
def find_zone(name: str) -> ZoneInfo:
    """Return the IANA zone of that name. For an unknown name, raises DefinitionError, which suggests the name that was
    probably meant."""
    # Look the name up in the list instead of opening it: the database has files that are not zones, such as leap
    # seconds.
    names = available_timezones() - _NO_ZONES
    if name in names:
        return ZoneInfo(name)
    if offset := _OFFSET.fullmatch(name):
        turned = "-" if offset["sign"] == "+" else "+"
        hint = f"The zone with this fixed offset is 'Etc/GMT{turned}{int(offset['hours'])}', with the sign reversed."
        raise DefinitionError(f"There is no time zone {name!r}.", hint=hint)
    folded = {zone.casefold(): zone for zone in names}
    cities = {zone.rsplit("/", 1)[-1].casefold(): zone for zone in sorted(names)}
    normalized = name.casefold().replace(" ", "_")
    meant = folded.get(normalized) or cities.get(normalized)
    if meant is None and (near := get_close_matches(normalized, folded, n=1)):
        meant = folded[near[0]]
    hint = f"Did you mean {meant!r}?" if meant else "Use an IANA name, such as 'Europe/Berlin' or 'UTC'."
    raise DefinitionError(f"There is no time zone {name!r}.", hint=hint)


def wall(instant: datetime, zone: ZoneInfo) -> datetime:
    """Return the local time that clocks show at `instant`: a datetime without a zone."""
    return instant.astimezone(zone).replace(tzinfo=None, fold=0)


def offset_at(instant: datetime, zone: ZoneInfo) -> timedelta:
    """Return the offset of the zone from UTC at `instant`."""
    offset = instant.astimezone(zone).utcoffset()
    assert offset is not None
    return offset


def next_change(start: datetime, until: datetime, zone: ZoneInfo) -> datetime | None:
    """Return the first instant in (start, until], to the second, at which the zone's offset differs from the one
    before, or None.

    The search goes a day at a time: no zone changes its offset to and fro within a day.
    """
    old_offset = offset_at(start, zone)
    while start < until:
        end = min(start + _DAY, until)
        if offset_at(end, zone) != old_offset:
            return _change_within(start, end, zone)
        start = end
    return None


def _change_within(low: datetime, high: datetime, zone: ZoneInfo) -> datetime:
    """Return the instant in (low, high] from which the offset is that of `high`.

    Offsets change at whole seconds. So the search is among whole seconds, whatever fraction `low` and `high` have.
    """
    old_offset = offset_at(low, zone)
    first = low.replace(microsecond=0)
    later = range(1, (high - first) // _SECOND + 1)
    place = bisect_left(later, True, key=lambda n: offset_at(first + n * _SECOND, zone) != old_offset)
    return first + later[place] * _SECOND


def first_instant(local_time: datetime, zone: ZoneInfo) -> datetime:
    """Return the first instant at which clocks show `local_time`. If clocks skip it, return the end of the gap."""
    instant = local_time.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if wall(instant, zone) == local_time:
        return instant
    # In a gap, fold=0 reads the time with the offset before the change, which is an instant after the gap. fold=1
    # gives one before.
    return _change_within(local_time.replace(tzinfo=zone, fold=1).astimezone(UTC), instant, zone)


def note_on(instant: datetime, zone: ZoneInfo, meant: datetime | None) -> str | None:
    """Return a note on an unusual local time of a fire, or None. `meant` is the time that a fixed-time schedule asked
    for."""
    local_time = wall(instant, zone)
    if meant is not None and meant != local_time:
        return f"{meant:%H:%M} is skipped as the clocks go forward; fires when the gap ends"
    first, second = (
        local_time.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)
    )  # differs only if the time comes twice
    if first >= second:
        return None
    if meant is not None:
        return f"{local_time:%H:%M} comes twice as the clocks go back; fires the first time"
    which = "first" if instant < second else "second"
    return f"{local_time:%H:%M} comes twice as the clocks go back; this is the {which} time"
