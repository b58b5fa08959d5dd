"""Durations as people write them: `10`, `timedelta(seconds=10)`, `"10s"`, `"5m"`, `"1h30m"`. They are stored in
seconds."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from typing import Annotated, Any

from pydantic import PlainSerializer, PlainValidator

from penstock.language.terms.options import Wrong

LONGEST = 100 * 366 * 86_400
"""The longest duration, in seconds: a hundred years. A longer one could make a due time leave the calendar."""

_UNITS = {"w": 604_800.0, "d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PART = r"(\d+(?:\.\d+)?)"
_TEXT = re.compile("".join(rf"(?:{_PART}{unit}\s*)?" for unit in _UNITS))
_HINT = 'Write seconds (90), a timedelta, or text such as "10s", "5m", "1h30m", "500ms".'


def seconds(value: object) -> float:
    """Return `value` in seconds. Whole seconds are an int, so that equal durations are equal in JSON.

    Raises Wrong (a ValueError) for a value that is not a duration, is negative, or is longer than LONGEST.
    """
    if isinstance(value, timedelta):
        number = value.total_seconds()
    elif isinstance(value, str):
        number = _read(value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value)
    else:
        raise Wrong(f"is not a duration: {type(value).__name__}", _HINT)
    if not math.isfinite(number) or not 0 <= number <= LONGEST:
        raise Wrong("must be between 0 and 100 years", _HINT)
    return int(number) if number.is_integer() else number


def _read(text: str) -> float:
    match = _TEXT.fullmatch(text.strip())
    if match is None or not any(match.groups()):
        raise Wrong(f"is not a duration: {text!r}", _HINT)
    parts = zip(match.groups(), _UNITS.values(), strict=True)
    # Rounded, since 0.1 + 0.2 is not 0.3. Durations are no finer than a microsecond.
    return round(sum(float(part) * unit for part, unit in parts if part), 6)


def as_text(number: float) -> str:
    """Return seconds as people write them, to the millisecond: 90 is `1m30s`. `seconds` parses the text."""
    remaining, parts = round(number * 1000), []
    for unit, worth in _UNITS.items():
        count, remaining = divmod(remaining, round(worth * 1000))
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def positive_seconds(value: object) -> float:
    """Parse a duration as `seconds` does, and refuse zero."""
    if not (number := seconds(value)):
        raise Wrong("must be longer than 0 s", _HINT)
    return number


def _as_it_is(number: float) -> Any:  # typed float, pydantic would write 5 as 5.0
    return number


Duration = Annotated[float, PlainValidator(seconds), PlainSerializer(_as_it_is)]
"""A pydantic type for a duration in seconds."""
PositiveDuration = Annotated[float, PlainValidator(positive_seconds), PlainSerializer(_as_it_is)]
"""A pydantic type for a duration in seconds that is not zero."""
