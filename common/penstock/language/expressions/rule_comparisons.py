"""The comparisons of a context value with an expected value, for trigger rules that are written as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, Final

from penstock.errors import DefinitionError, ExpressionError
from penstock.language.expressions.budget import Refused, budget, refuse_stored
from penstock.language.expressions.operators import COMPARISONS, contains

ABSENT: Final = object()
"""The result of `look_up` for a path that leads nowhere."""

OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": COMPARISONS["eq"],
    "!=": COMPARISONS["ne"],
    ">": COMPARISONS["gt"],
    ">=": COMPARISONS["gteq"],
    "<": COMPARISONS["lt"],
    "<=": COMPARISONS["lteq"],
    "in": COMPARISONS["in"],
    "not in": COMPARISONS["notin"],
    "contains": contains,
    "not contains": lambda actual, expected: not contains(actual, expected),
    "exists": lambda actual, _: actual is not ABSENT,
    "not exists": lambda actual, _: actual is ABSENT,
}
_IF_ABSENT = frozenset({"!=", "not in", "not contains", "not exists"})
"""The operators that hold for an absent value: the negations. No other operator does."""


def look_up(path: str, data: Any) -> Any:
    """Return the value at `path` (`customer.orders.0.id`), or ABSENT. A key that itself contains dots wins over a
    path. Raises ExpressionError for a path into a result in the result store."""
    if isinstance(data, Mapping) and path in data:
        return data[path]
    for name in path.split("."):
        try:
            refuse_stored(data)
        except Refused as error:
            raise ExpressionError(f"`{path}` cannot be read: {error}.", hint=error.hint) from None
        if isinstance(data, Mapping) and name in data:
            data = data[name]
        elif isinstance(data, (list, tuple)) and name.isdigit() and int(name) < len(data):
            data = data[int(name)]
        else:
            return ABSENT
    return data


def holds(operator: str, actual: Any, expected: Any = None) -> bool:
    """Return whether `actual` (a value, or ABSENT) has the relation `operator` to `expected`. Raises DefinitionError
    for an operator that is not in OPERATORS. Raises ExpressionError for values that cannot be compared, such as a text
    with a number by `>`."""
    if operator not in OPERATORS:
        near = get_close_matches(operator, OPERATORS, n=1)
        meant = f"Did you mean `{near[0]}`? " if near else ""
        raise DefinitionError(
            f"There is no operator {operator!r}.", hint=f"{meant}Use {', '.join(OPERATORS)}."
        )
    if actual is ABSENT:
        return operator in _IF_ABSENT
    try:
        with budget():
            return OPERATORS[operator](actual, expected)
    except (TypeError, Refused) as error:
        kinds = f"a {type(actual).__name__} and a {type(expected).__name__}"
        raise ExpressionError(f"`{operator}` does not compare {kinds}: {error}.") from None
