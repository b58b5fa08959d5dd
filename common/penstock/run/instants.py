"""Instants as people write them, in ISO 8601: `2030-01-31T09:00:00+01:00`. All that takes an instant reads it with
`instant`."""

from __future__ import annotations

import re
from datetime import datetime

_FORM = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d(?::?\d\d(?::\d\d)?)?)?)?",
    re.ASCII | re.IGNORECASE,
)
HINT = "Write 2030-01-31, 2030-01-31T09:00 or 2030-01-31T09:00:00+01:00."


class WrongInstant(ValueError):
    """The error for a text that is not an instant. It has the fault of the text; HINT says what to write instead."""


def instant(text: object) -> datetime:
    """Return a date, or a date and a time, in the extended form of ISO 8601. A date is its midnight. The result has a zone
    if the text has an offset, which a date has not.

    Raises WrongInstant for any other value. Digits such as `20301231` are refused: one reader would take them as a date,
    and another as Unix seconds.
    """
    if isinstance(text, int | float) or (isinstance(text, str) and _is_number(text)):
        raise WrongInstant("a number is read neither as a date nor as Unix seconds")
    if not isinstance(text, str) or not _FORM.fullmatch(text):
        raise WrongInstant("it is not a date, or a date and a time, in ISO 8601 with '-' and ':'")
    try:
        return datetime.fromisoformat(text.upper())
    except ValueError as error:
        raise WrongInstant(str(error)) from None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
