"""The look-ups `a.b` and `a[b]`: keys and items of data first, then a short list of harmless methods.

Nothing else of a Python object can be reached: an attribute that is not listed here does not exist for an expression.
So no path leads from a value to its class, to `str.format`, or to a method that changes a value in place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any

from jinja2 import Undefined
from jinja2.runtime import LoopContext

from penstock.language.expressions import text
from penstock.language.expressions.budget import Refused, refuse_stored, spend, spend_on
from penstock.language.expressions.missing import Missing, readable

_STR = (
    "capitalize casefold count endswith find isalnum isalpha isdecimal isdigit islower isnumeric isspace isupper "
    "lower lstrip partition removeprefix removesuffix rfind rpartition rsplit rstrip split splitlines "
    "startswith strip swapcase title upper"
)
_DATE = "day isoformat isoweekday month weekday year"
_LOOP = "cycle first index index0 last length nextitem previtem revindex revindex0"
_DATETIME = f"{_DATE} date hour microsecond minute second time timestamp"


def _paid(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return `method` wrapped, so that a call first pays for its arguments."""

    def paid(*args: Any) -> Any:
        spend_on(*args)
        return method(*args)

    return paid


def _key_or(mapping: Mapping[Any, Any], key: Any, default: Any = None) -> Any:
    return mapping.get(as_key(key), default)


STR_METHODS: dict[str, Callable[..., Any]] = {name: _paid(getattr(str, name)) for name in _STR.split()} | {
    "join": text.join_with,
    "replace": text.replace,
}
"""The methods of texts that expressions may call, by name."""
MAPPING_METHODS: dict[str, Callable[..., Any]] = {
    "get": _key_or,
    "items": lambda mapping: list(mapping.items()),
    "keys": lambda mapping: list(mapping.keys()),
    "values": lambda mapping: list(mapping.values()),
}
"""The methods of mappings that expressions may call, by name."""
ATTRIBUTES: tuple[tuple[type, frozenset[str]], ...] = (
    (datetime, frozenset(_DATETIME.split())),
    (date, frozenset(_DATE.split())),
    (timedelta, frozenset({"days", "seconds", "total_seconds"})),
    (LoopContext, frozenset(_LOOP.split())),
)
"""The attributes and methods without arguments, by the type that has them. The first matching type is used."""


def member(value: Any, name: str) -> Any:
    """Return `value.name`: an item of a mapping, else an attribute listed above, else undefined."""
    if type(value) is dict or isinstance(value, Mapping):  # `type` is far quicker than `isinstance`
        refuse_stored(value)
        if name in value:
            return readable(value[name])
        if name in MAPPING_METHODS:
            return partial(MAPPING_METHODS[name], value)
    elif isinstance(value, Undefined):
        return value
    elif isinstance(value, str):
        if name in STR_METHODS:
            return partial(STR_METHODS[name], value)
    else:
        for kind, names in ATTRIBUTES:
            if isinstance(value, kind):
                return getattr(value, name) if name in names else Missing(obj=value, name=name)
    return Missing(obj=value, name=name)


def item(value: Any, key: Any) -> Any:
    """Return `value[key]`: an item, else undefined. Never an attribute, except of dates."""
    if isinstance(value, Undefined):
        return value
    key = as_key(key)
    if isinstance(value, Mapping):
        refuse_stored(value)
        return readable(value[key]) if key in value else Missing(obj=value, name=key)
    if isinstance(value, (str, list, tuple)) and isinstance(key, int):
        return value[key] if -len(value) <= key < len(value) else Missing(obj=value, name=key)
    if isinstance(value, date) and isinstance(key, str):
        return member(value, key)  # reached by `map(attribute="year")`
    return Missing(obj=value, name=key)


def part(value: Any, start: Any, stop: Any, step: Any) -> Any:
    """Return `value[start:stop:step]`."""
    refuse_stored(value)
    if not isinstance(value, (str, list, tuple)):
        raise Refused(f"a {type(value).__name__} cannot be sliced")
    spend(1 + (len(value) >> 6 if isinstance(value, str) else len(value)))
    return value[start:stop:step]


def as_key(key: Any) -> Any:
    """Return `key` if it is a plain value. A nested tuple is refused, since hashing it may take for ever."""
    if isinstance(key, Undefined):
        bool(key)  # raises for an undefined value
    if key is None or isinstance(key, (str, int, float)):
        return key
    raise Refused(f"a {type(key).__name__} cannot be a key")
