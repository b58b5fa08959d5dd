"""Schedules without a calendar: one instant, or an interval."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from penstock.errors import DefinitionError
from penstock.language.schedules.due import Due
from penstock.language.schedules.zones import first_instant
from penstock.language.terms.durations import seconds
from penstock.language.terms.options import Wrong
from penstock.run import instants

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_at(text: str, zone: ZoneInfo) -> Callable[[datetime], Iterator[Due]]:
    """Return the function that yields the due instant of `at 2030-01-31T09:00`. Without an offset it is read in `zone`.
    Raises DefinitionError if the text is not an instant."""
    instant_text = text.split(maxsplit=1)[1].strip()
    try:
        at = instants.instant(instant_text)
        due = Due(at.astimezone(UTC)) if at.tzinfo else Due(first_instant(at, zone), at)
    except (ValueError, OverflowError) as error:
        hint = "Write 'at 2030-01-31T09:00', or with an offset, 'at 2030-01-31T09:00:00+01:00'."
        raise DefinitionError(
            f"Schedule {text!r}: {instant_text!r} is not an instant: {error}.", hint=hint
        ) from None
    return lambda since: iter([due] if due.instant > since else [])


def parse_every(text: str, anchor: datetime) -> Callable[[datetime], Iterator[Due]]:
    """Return the function that yields the due instants of `@every 90s`: at `anchor`, and then at each interval. Raises
    DefinitionError if the period is not valid, or shorter than a second."""
    try:
        period = timedelta(seconds=seconds(text.split(maxsplit=1)[1]))
    except Wrong as wrong:
        raise DefinitionError(f"Schedule {text!r}: the period {wrong}.", hint=wrong.hint) from None
    if period < timedelta(seconds=1):
        raise DefinitionError(
            f"Schedule {text!r}: the period is shorter than a second.", hint="Write @every 1s."
        )

    def walk(since: datetime) -> Iterator[Due]:
        turn = max(0, (since - anchor) // period + 1)
        while True:
            yield Due(anchor + turn * period)
            turn += 1

    return walk
