"""Durations as people write them: `10`, `timedelta(seconds=10)`, `"10s"`, `"5m"`, `"1h30m"`. They are stored in
seconds."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import PlainSerializer, PlainValidator

from penstock.language.terms.options import Wrong
from penstock.run import durations
from penstock.run.durations import HINT, UNITS


def seconds(value: object) -> float:
    """Return `value` in seconds. Whole seconds are an int, so that equal durations are equal in JSON.

    Raises Wrong (a ValueError) for a value that is not a duration, is negative, or is longer than LONGEST.
    """
    try:
        return durations.seconds(value)
    except durations.WrongDuration as wrong:
        raise Wrong(str(wrong), HINT) from None


def as_text(number: float) -> str:
    """Return seconds as people write them, to the millisecond: 90 is `1m30s`. `seconds` parses the text."""
    remaining, parts = round(number * 1000), []
    for unit, worth in UNITS.items():
        count, remaining = divmod(remaining, round(worth * 1000))
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def positive_seconds(value: object) -> float:
    """Parse a duration as `seconds` does, and refuse zero."""
    if not (number := seconds(value)):
        raise Wrong("must be longer than 0 s", HINT)
    return number


# The return type is Any: with the type float, pydantic would write 5 as 5.0.
def _as_it_is(number: float) -> Any:
    return number


Duration = Annotated[float, PlainValidator(seconds), PlainSerializer(_as_it_is)]
"""A pydantic type for a duration in seconds."""
PositiveDuration = Annotated[float, PlainValidator(positive_seconds), PlainSerializer(_as_it_is)]
"""A pydantic type for a duration in seconds that is not zero."""
