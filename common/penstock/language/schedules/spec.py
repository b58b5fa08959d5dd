"""The times of a schedule, parsed from any of its notations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from typing import Annotated

from pydantic import Field

from penstock.errors import DefinitionError
from penstock.language.schedules.at_and_every import EPOCH, parse_at, parse_every
from penstock.language.schedules.cron import WORDS, parse_cron
from penstock.language.schedules.due import Due
from penstock.language.schedules.rrule import parse_rrule
from penstock.language.schedules.zones import find_zone, note_on

_WORDS_HINT = f"There is {', '.join(WORDS)}, and `@every 90s`."


@dataclass(frozen=True, slots=True)
class Preview:
    """A future fire. `local` is `instant` in the schedule's zone."""

    instant: Annotated[datetime, Field(description="The instant of the fire, in UTC.")]
    local: Annotated[datetime, Field(description="The same instant in the zone of the schedule.")]
    note: Annotated[str | None, Field(description="A note on a clock change of its zone; null without one.")]


@dataclass(frozen=True, slots=True)
class Spec:
    """The instants at which a schedule fires, in UTC. The instants are whole seconds, unless the notation is finer.

    Create one with `Spec.parse`. Two specs with the same text, zone and anchor are equal.
    """

    text: str
    zone: str
    anchor: datetime
    _walk: Callable[[datetime], Iterator[Due]] = field(repr=False, compare=False)

    @classmethod
    def parse(cls, text: str, zone: str = "UTC", *, anchor: datetime = EPOCH) -> Spec:
        """Parse a cron expression of five or six fields, `@daily` and the like, `@every 90s`, `at <ISO time>`, or
        `DTSTART:... RRULE:...`. The expression is read in the IANA zone `zone`.

        `anchor` is an aware instant at which an `@every` fires for the first time. Raises DefinitionError that names
        the fault and its position, also for a schedule that never fires (`30 2 30 2 *`).
        """
        text = text.strip()
        zone_info = find_zone(zone)
        word = text.split()[0].lower() if text else ""
        if word == "@every" and text != word:
            walk = parse_every(text, anchor)
        elif word in ("at", "@at") and text != word:
            walk = parse_at(text, zone_info)
        elif word.startswith(("dtstart", "rrule", "freq=")):
            walk = parse_rrule(text, zone_info)
        elif word.startswith("@") and word not in WORDS:
            hint = (
                "Penstock has no such schedule: let the process start this work itself."
                if word == "@reboot"
                else _WORDS_HINT
            )
            raise DefinitionError(f"Schedule {text!r}: this word names no schedule.", hint=hint)
        else:
            walk = parse_cron(text, zone_info)
        return cls(text, zone, anchor, walk)

    def after(self, instant: datetime) -> datetime | None:
        """Return the first fire after `instant` (an aware datetime), or None if there is none."""
        return next(self._instants(instant), None)

    def between(self, since: datetime, until: datetime, cap: int | None) -> list[datetime]:
        """Return the first `cap` fires after `since`, up to and including `until`, in order."""
        return list(islice(takewhile(lambda instant: instant <= until, self._instants(since)), cap))

    def latest(self, since: datetime, until: datetime, count: int) -> list[datetime]:
        """Return the last `count` fires after `since`, up to and including `until`, in order.

        The cost is proportional to `count`, however long the period is: the search starts at the end and widens.
        """
        length = timedelta(minutes=10)
        while count > 0 and until > since:
            whole = until - since <= length
            fires = self.between(since if whole else until - length, until, None)
            if whole or len(fires) >= count:
                return fires[-count:]
            length *= 4
        return []

    def preview(self, count: int, now: datetime) -> list[Preview]:
        """Return the next `count` fires after `now`, with notes on the zone's clock changes."""
        zone = find_zone(self.zone)
        return [
            Preview(due.instant, due.instant.astimezone(zone), note_on(due.instant, zone, due.meant))
            for due in islice(self._dues(now), count)
        ]

    def _instants(self, since: datetime) -> Iterator[datetime]:
        return (due.instant for due in self._dues(since))

    def _dues(self, since: datetime) -> Iterator[Due]:
        try:
            yield from self._walk(_aware(since))
        except OverflowError:  # the calendar ends with the year 9999
            return


def _aware(instant: datetime) -> datetime:
    if instant.tzinfo is None:
        raise ValueError("an instant needs a zone")
    return instant.astimezone(UTC)
