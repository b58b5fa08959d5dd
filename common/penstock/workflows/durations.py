"""Durations as people write them: a number of seconds, or a text such as `90s`, `1h30m`, `250ms`."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_WHOLE = re.compile(rf"(?:{_PART.pattern})+")


def seconds(value: Any) -> float:
    """Seconds of a number, a timedelta or a text. Raises ValueError that says how to write it."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str) and len(value) <= 40:
        text = value.replace(" ", "")
        if re.fullmatch(r"\d+(\.\d+)?", text):
            return float(text)
        if _WHOLE.fullmatch(text):
            return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    raise ValueError("a duration is a number of seconds, or a text such as 90s, 10m, 1h30m, 2d")
