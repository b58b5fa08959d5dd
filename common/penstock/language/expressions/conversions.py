"""The conversions between kinds of values, which only run on demand. A value that cannot be converted is refused,
never guessed. The refusal does not show the value, which may be secret."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import orjson
from jinja2.filters import do_round

from penstock.errors import InvalidInput
from penstock.language.expressions.budget import Refused, fits
from penstock.run.json_integers import parsed

_REQUIRED: Any = object()
_BOOLS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def _number(kind: Callable[[Any], Any], name: str) -> Callable[..., Any]:
    def convert(value: Any, default: Any = _REQUIRED) -> Any:
        try:
            result = kind(value)
            if isinstance(result, float) and not math.isfinite(result):
                raise ValueError
        except (TypeError, ValueError, OverflowError):
            if default is not _REQUIRED:
                return default
            hint = f"If that is expected, give a default: `| {name}(0)`."
            raise Refused(f"a {type(value).__name__} cannot be read as {name}", hint) from None
        return result

    return convert


to_int = _number(int, "int")
"""Convert to an integer: `"12" | int` is 12, `"x" | int(0)` is 0, `3.7 | int` is 3."""
to_float = _number(float, "float")
"""Convert to a float: `"1.5" | float`. The result is never NaN or infinite."""


def to_bool(value: Any) -> bool:
    """Convert to a boolean: `"false" | bool` is false. Takes true, yes, 1, false, no and 0, in any case."""
    boolean = value if isinstance(value, bool) else _BOOLS.get(str(value).lower())
    if boolean is None:
        raise Refused(f"this {type(value).__name__} cannot be read as bool", "Compare it instead, with `==`.")
    return boolean


def rounded(value: Any, digits: int = 0, method: Any = "common") -> float:
    """Round a number: `value | round(2)`. `method` is common, ceil or floor."""
    if not isinstance(digits, int) or abs(digits) > 15:
        raise Refused("`round` takes between -15 and 15 digits")
    return do_round(value, digits, method)


def to_json(value: Any) -> str:
    """Return a value as compact JSON, with instants in ISO 8601."""
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
    except TypeError as error:  # the error's text has names of types only
        raise Refused(f"it cannot be written as JSON: {error}") from None


def from_json(value: Any) -> Any:
    if not isinstance(value, (str, bytes)):
        raise Refused(f"`fromjson` takes text, not a {type(value).__name__}")
    fits(len(value))
    try:
        return parsed(value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value, "the text")
    except orjson.JSONDecodeError as error:
        raise Refused(f"the text is not JSON: {error.msg} at character {error.pos + 1}") from None
    except InvalidInput as error:
        raise Refused(error.message) from None


def to_datetime(value: Any) -> datetime:
    """Return an instant from ISO 8601 text, seconds since 1970, or a date. Without a zone it is taken as UTC."""
    try:
        if isinstance(value, (int, float)):
            return datetime.fromtimestamp(value, UTC)
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        elif not isinstance(value, datetime) and isinstance(value, date):
            value = datetime(value.year, value.month, value.day)
        return value if value.tzinfo else value.replace(tzinfo=UTC)  # type: ignore[no-any-return]
    except (ValueError, OverflowError, OSError, AttributeError):
        hint = 'Write it as in "2026-03-01T09:00:00Z".'
        raise Refused(f"this {type(value).__name__} cannot be read as an instant", hint) from None


def to_date(value: Any) -> date:
    """Return the day of an instant, in the instant's own zone."""
    return to_datetime(value).date()


def duration(days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0) -> timedelta:
    """Return a length of time, as in `now() + duration(hours=2)`."""
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
