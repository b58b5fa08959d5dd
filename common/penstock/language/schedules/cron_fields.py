"""The fields of a cron expression, checked one by one, so that an error names the position and the reason."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.errors import DefinitionError
from penstock.language.terms.options import did_you_mean

_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_LENGTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a cron expression. `names` stand for the values from `lowest` upward."""

    name: str
    lowest: int
    highest: int
    names: tuple[str, ...] = ()


SECOND = Field("second", 0, 59)
MINUTE = Field("minute", 0, 59)
HOUR = Field("hour", 0, 23)
DAY = Field("day-of-month", 1, 31)
MONTH = Field("month", 1, 12, _MONTHS)
WEEKDAY = Field("day-of-week", 0, 7, _DAYS)
SIX = (SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY)


class _Wrong(Exception):
    """A fault in a field. `offset` counts characters from the start of the field."""

    def __init__(self, reason: str, offset: int, hint: str | None = None) -> None:
        super().__init__(reason)
        self.offset, self.hint = offset, hint


def parse_fields(text: str) -> list[str]:
    """Return the five or six fields, in capitals. Raises DefinitionError that names field, position and reason."""
    parts = [(match.group().upper(), match.start()) for match in re.finditer(r"\S+", text)]
    if len(parts) not in (5, 6):
        raise DefinitionError(
            f"Schedule {text!r} has {len(parts)} fields, not five or six.",
            hint="Write minute hour day-of-month month day-of-week, or six fields with the seconds first.",
        )
    fields = SIX[-len(parts) :]
    values: dict[str, set[int]] = {}
    for field, (part, start) in zip(fields, parts, strict=True):
        try:
            values[field.name] = _values(field, part)
        except _Wrong as wrong:
            raise _refused(text, field, start + wrong.offset, str(wrong), wrong.hint) from None
    if reason := _impossible(values, parts[-3][0], parts[-1][0]):
        raise _refused(text, DAY, parts[-3][1], reason, None)
    return [part for part, _ in parts]


def values_written_out(parts: Sequence[str]) -> list[str]:
    """Return the fields, as `parse_fields` returns them, with ranges and steps expanded to values: `9,11,13` for
    `9-13/2`. A field that counts from `*`, or depends on the month, stays unchanged."""

    def written_out(field: Field, term: str) -> str:
        if term.startswith("*") or _is_special(field, term, 0):
            return term
        return ",".join(map(str, sorted(_term(field, term, 0))))

    fields = zip(SIX[-len(parts) :], parts, strict=True)
    return [",".join(written_out(field, term) for term in part.split(",")) for field, part in fields]


def _refused(text: str, field: Field, position: int, reason: str, hint: str | None) -> DefinitionError:
    where = f"{field.name} is wrong at character {position + 1}"
    return DefinitionError(f"Schedule {text!r}: {where}: {reason}.", hint=hint)


def _values(field: Field, text: str) -> set[int]:
    """Return the numbers that a field allows, or an empty set for fields such as `L`, which depend on the month."""
    values: set[int] = set()
    offset = 0
    for term in text.split(","):
        values |= _term(field, term, offset)
        offset += len(term) + 1
    return values


def _term(field: Field, term: str, offset: int) -> set[int]:
    base, slash, step = term.partition("/")
    if not slash and _is_special(field, base, offset):
        return set()
    if base == "*":
        low, high = field.lowest, field.highest
    else:
        start, dash, end = base.partition("-")
        low = _number(field, start, offset)
        high = _number(field, end, offset + len(start) + 1) if dash else field.highest if slash else low
        if high < low:
            raise _Wrong(f"the range {base} runs backwards", offset, _in_two(field, low, start, end))
    return set(range(low, high + 1, _step(field, step, offset + len(base) + 1) if slash else 1))


def _in_two(field: Field, low: int, start: str, end: str) -> str:
    last = 6 if field is WEEKDAY else field.highest  # both 0 and 7 are Sunday
    if low > last:
        return f"Write {field.lowest}-{end}."
    return f"Write two: {start}-{last},{field.lowest}-{end}."


def _is_special(field: Field, base: str, offset: int) -> bool:
    """Return whether the field is `L` or `LW` (last day, last weekday of the month), or `5L` or `FRI#2` (last, second
    Friday)."""
    if field is DAY and base in ("L", "LW"):
        return True
    if field is WEEKDAY and "#" in base:
        day, _, nth = base.partition("#")
        _number(field, day, offset)
        if nth not in ("1", "2", "3", "4", "5"):
            raise _Wrong(f"{nth!r} is not between 1 and 5", offset + len(day) + 1)
        return True
    if field is WEEKDAY and base.endswith("L"):
        if not base[:-1].isdigit():
            raise _Wrong(f"{base!r} has no number before the L", offset, "The last Friday is 5L.")
        _number(field, base[:-1], offset)
        return True
    return False


def _number(field: Field, text: str, offset: int) -> int:
    if text in field.names:
        return field.lowest + field.names.index(text)
    if not text:
        raise _Wrong("a value is missing", offset)
    if not (text.isascii() and text.isdigit()):
        named = f" or {field.names[0]}-{field.names[-1]}" if field.names else ""
        raise _Wrong(f"{text!r} is not {field.lowest}-{field.highest}{named}", offset, _meant(field, text))
    if not field.lowest <= int(text[:9]) <= field.highest:
        hint = "Midnight is hour 0." if field is HOUR and text == "24" else None
        raise _Wrong(f"{text} is not between {field.lowest} and {field.highest}", offset, hint)
    return int(text)


def _meant(field: Field, text: str) -> str:
    """Return a suggestion for text that is not a number."""
    if text == "?":
        return "Write `*` for any."
    if field.names and text.isalpha():
        return did_you_mean(text, (*field.names, "*"))
    return f"Give numbers from {field.lowest} to {field.highest}, or `*` for any."


def _step(field: Field, text: str, offset: int) -> int:
    if not (text.isascii() and text.isdigit()) or int(text[:9]) == 0:
        raise _Wrong(f"the step {text!r} is not a number of at least 1", offset)
    size = field.highest - field.lowest + 1
    if int(text[:9]) > size:
        # Such a field would match the first value only, which is not the meaning of `*/90` for minutes.
        unit = {"second": "s", "minute": "m", "hour": "h"}.get(field.name)
        hint = f"For elapsed time, write `@every {text}{unit}`." if unit else None
        raise _Wrong(f"the step {text} is larger than the number of values, {size}", offset, hint)
    return int(text)


def _impossible(values: dict[str, set[int]], day: str, weekday: str) -> str | None:
    """Return the reason why no date can match, or None. If neither day field starts with a star, a date that matches
    either one matches (as cron has it)."""
    if not (day.startswith("*") or weekday.startswith("*")) or "L" in day:
        return None
    months = sorted(values[MONTH.name])
    first = min(values[DAY.name])
    if first <= max(_LENGTHS[month - 1] for month in months):
        return None
    return f"no day {first} in {', '.join(_MONTHS[month - 1] for month in months)}"
