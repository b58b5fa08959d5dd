"""The filters, tests and functions that expressions may use. No others exist.

Jinja's own are used where they are harmless. A call first pays for its arguments, and returns a list where Jinja would
return an iterator. Left out are those that format by a pattern (`format`, `%`), reach attributes (`attr`, `xmlattr`),
or make HTML. Random ones are left out, as the same expression must give the same value again. Regular expressions are
left out too: Python's engine can take exponential time. `startswith`, `endswith`, `in`, `split` and `replace` are
enough for parameters and conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from datetime import timedelta
from decimal import Decimal
from functools import wraps
from typing import Any

from jinja2 import Environment, Undefined, pass_environment
from jinja2 import filters as jinjas_filters
from jinja2 import tests as jinjas_tests

from penstock.language.expressions import conversions, text
from penstock.language.expressions.budget import MAX_RANGE, Refused, fits, refuse_stored, spend, spend_on
from penstock.language.expressions.lookup import item
from penstock.language.expressions.operators import COMPARISONS, contains

JINJA_FILTERS: Mapping[str, Any] = jinjas_filters.FILTERS
JINJA_TESTS: Mapping[str, Any] = jinjas_tests.TESTS

FREE, ITEMS, DEEP, DEEP_ITEMS = "free", "items", "deep", "deep items"
"""The cost of a call: nothing, one step an item, the whole size of its arguments, or both of the latter."""


def _paid(function: Callable[..., Any], cost: str) -> Callable[..., Any]:
    """Return `function` wrapped. A call first pays its cost, and never returns an iterator or a value that is too
    long."""
    first = 1 if hasattr(function, "jinja_pass_arg") else 0  # Jinja passes its context or environment first

    @wraps(function)
    def paid(*args: Any, **kwargs: Any) -> Any:
        arguments = [*args[first:], *kwargs.values()]
        if cost in (DEEP, DEEP_ITEMS):
            spend_on(*arguments)
        _defined(arguments)
        if cost in (ITEMS, DEEP_ITEMS) and arguments and isinstance(arguments[0], Sized):
            paths = sum(
                len(name) for name in arguments[1:] if isinstance(name, str)
            )  # a path in `attribute="a.b.c"` is looked up in each item
            spend(1 + len(arguments[0]) * (1 + (paths >> 2)))
        result = function(*args, **kwargs)
        if isinstance(result, Iterator):
            return list(result)
        if isinstance(result, str):
            fits(len(result))
        return result

    return paid


def _defined(values: Iterable[Any]) -> None:
    for value in values:
        if isinstance(value, Undefined):
            bool(value)  # raises, with an explanation
        refuse_stored(value)


def _pluck(value: Any, attribute: str) -> Any:
    for name in attribute.split("."):
        value = item(value, int(name) if name.isdigit() else name)
    return value


def total(values: Any, attribute: str | None = None, start: Any = 0) -> Any:
    """Return the sum of numbers or durations: `values | sum`. Lists are refused, as adding them up takes the square of
    their length."""
    numbers = values if attribute is None else [_pluck(value, attribute) for value in values]
    _defined(numbers)
    if any(isinstance(value, timedelta) for value in numbers):
        start = start or timedelta()
    elif not all(isinstance(value, (int, float, Decimal)) for value in (start, *numbers)):
        raise Refused("`sum` adds numbers only", "Convert with `map('float')`, join texts with `join`.")
    return sum(numbers, start)


def join(values: Any, separator: str = "", attribute: str | None = None) -> str:
    return text.join(
        [value if attribute is None else _pluck(value, attribute) for value in values], separator
    )


def limited_range(*bounds: int) -> list[int]:
    """Return the list of a `range`, with at most MAX_RANGE items."""
    try:
        length = len(range(*bounds))
    except OverflowError:
        length = MAX_RANGE + 1
    if length > MAX_RANGE:
        raise Refused(f"it makes a range of more than {MAX_RANGE:,} items")
    spend(length)
    return list(range(*bounds))


def flatten(values: Any) -> list[Any]:
    """Flatten one level: `[[1, 2], 3] | flatten` is `[1, 2, 3]`."""
    flat: list[Any] = []
    for value in values:
        if isinstance(value, (list, tuple)):
            spend(len(value))
            flat.extend(value)
        else:
            flat.append(value)
    return flat


def combine(first: Any, *mappings: Any, recursive: bool = False) -> dict[Any, Any]:
    """Return the entries of all mappings: `a | combine(b)`. For equal keys the later one wins. With `recursive` two
    mappings below the same key are combined too."""
    combined: dict[Any, Any] = {}
    for mapping in (first, *mappings):
        spend(1 + len(mapping))
        if not recursive:
            combined.update(mapping)
            continue
        for key, value in mapping.items():
            earlier = combined.get(key)
            is_nested = isinstance(earlier, Mapping) and isinstance(value, Mapping)
            combined[key] = combine(earlier, value, recursive=True) if is_nested else value
    return combined


def split(value: str, separator: str | None = None, maximum: int = -1) -> list[str]:
    return value.split(separator, maximum)


def zipped(*values: Any) -> list[tuple[Any, ...]]:
    """Return tuples of the first items, of the second items, and so on, up to the length of the shortest value."""
    return list(zip(*values, strict=False))


@pass_environment
def group_by(environment: Environment, values: Any, attribute: str | int) -> list[tuple[Any, list[Any]]]:
    """Return pairs of a key and the values that have it, ordered by key: `values | groupby("city")`."""
    return [(key, group) for key, group in JINJA_FILTERS["groupby"](environment, values, attribute)]


def _extreme(choose: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *values: choose(values[0] if len(values) == 1 else values)


def _sorted(values: Any, reverse: bool = False) -> list[Any]:
    return sorted(values, reverse=reverse)


_JINJAS_FILTERS = {
    FREE: "abs count first last length",
    ITEMS: "items list map reject rejectattr reverse select selectattr",
    DEEP: "capitalize lower title trim truncate upper urlencode wordcount",
    DEEP_ITEMS: "dictsort max min sort unique",
}
_OUR_FILTERS: dict[str, tuple[Callable[..., Any], str]] = {
    "bool": (conversions.to_bool, DEEP),
    "combine": (combine, FREE),
    "flatten": (flatten, ITEMS),
    "float": (conversions.to_float, DEEP),
    "fromjson": (conversions.from_json, DEEP),
    "groupby": (group_by, DEEP_ITEMS),
    "int": (conversions.to_int, DEEP),
    "join": (join, DEEP_ITEMS),
    "json": (conversions.to_json, DEEP),
    "replace": (text.replace, DEEP),
    "round": (conversions.rounded, DEEP),
    "split": (split, DEEP),
    "string": (text.as_text, DEEP),
    "sum": (total, ITEMS),
    "to_date": (conversions.to_date, DEEP),
    "to_datetime": (conversions.to_datetime, DEEP),
    "tojson": (conversions.to_json, DEEP),
    "zip": (zipped, ITEMS),
}
FILTERS: dict[str, Callable[..., Any]] = {
    "d": JINJA_FILTERS["default"],
    "default": JINJA_FILTERS["default"],
}
for _cost, _names in _JINJAS_FILTERS.items():
    FILTERS |= {name: _paid(JINJA_FILTERS[name], _cost) for name in _names.split()}
FILTERS |= {name: _paid(function, cost) for name, (function, cost) in _OUR_FILTERS.items()}

_JINJAS_TESTS = (
    "boolean divisibleby even false float integer iterable lower mapping none number odd sequence string "
    "true upper"
)
_COMPARING_TESTS = {
    "eq": "eq == equalto",
    "ne": "ne !=",
    "lt": "lt < lessthan",
    "gt": "gt > greaterthan",
    "lteq": "le <=",
    "gteq": "ge >=",
    "in": "in",
}
TESTS: dict[str, Callable[..., Any]] = {
    "contains": contains,
    "defined": JINJA_TESTS["defined"],
    "endswith": _paid(str.endswith, DEEP),
    "startswith": _paid(str.startswith, DEEP),
    "undefined": JINJA_TESTS["undefined"],
}
"""The tests of expressions (`x is defined`), by name."""
TESTS |= {name: _paid(JINJA_TESTS[name], DEEP) for name in _JINJAS_TESTS.split()}
for _operator, _names in _COMPARING_TESTS.items():
    TESTS |= dict.fromkeys(_names.split(), COMPARISONS[_operator])

GLOBALS: dict[str, Callable[..., Any]] = {
    "duration": _paid(conversions.duration, FREE),
    "len": FILTERS["length"],
    "max": _paid(_extreme(max), DEEP),
    "min": _paid(_extreme(min), DEEP),
    "range": limited_range,
    "sorted": _paid(_sorted, DEEP_ITEMS),
    "str": FILTERS["string"],
}
"""The functions of expressions. A name of the namespace hides a function of the same name."""
_ALSO_FUNCTIONS = "abs bool float fromjson int json round sum to_date to_datetime tojson zip"
GLOBALS |= {name: FILTERS[name] for name in _ALSO_FUNCTIONS.split()}
