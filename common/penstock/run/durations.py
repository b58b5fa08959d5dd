"""Durations as people write them: `10`, `timedelta(seconds=10)`, `"10s"`, `"5m"`, `"1h30m"`. All that takes a duration reads
it with `seconds`."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from typing import TypeAlias

Span: TypeAlias = float | str | timedelta
"""A duration: seconds, a text such as "1h30m", or a timedelta."""
LONGEST = 100 * 366 * 86_400
"""The longest duration, in seconds: a hundred years. A longer one could make a due time leave the calendar."""

UNITS = {"w": 604_800.0, "d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PART = r"(\d+(?:\.\d+)?)"
_TEXT = re.compile("".join(rf"(?:{_PART}{unit}\s*)?" for unit in UNITS))
HINT = 'Write seconds (90), a timedelta, or text such as "10s", "5m", "1h30m", "500ms".'


class WrongDuration(ValueError):
    """The error for a value that is not a duration. It has the fault of the value; HINT says what to write instead."""


def seconds(value: object) -> float:
    """Return `value` in seconds. Whole seconds are an int, so that equal durations are equal in JSON.

    Raises WrongDuration for a value that is not a duration, is negative, or is longer than LONGEST.
    """
    if isinstance(value, timedelta):
        number = value.total_seconds()
    elif isinstance(value, str):
        number = _read(value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value)
    else:
        raise WrongDuration(f"is not a duration: {type(value).__name__}")
    if not math.isfinite(number) or not 0 <= number <= LONGEST:
        raise WrongDuration("must be between 0 and 100 years")
    return int(number) if number.is_integer() else number


def _read(text: str) -> float:
    match = _TEXT.fullmatch(text.strip())
    if match is None or not any(match.groups()):
        raise WrongDuration(f"is not a duration: {text!r}")
    parts = zip(match.groups(), UNITS.values(), strict=True)
    # Rounded, since 0.1 + 0.2 is not 0.3. Durations are no finer than a microsecond.
    return round(sum(float(part) * unit for part, unit in parts if part), 6)
