"""The operators of expressions, where Python's own could take for ever or use up the memory.

`+ * ** %` come here from the sandbox's hook; `~`, comparisons of unknown values, the start of a loop and
computed keys of a `{...}` come here because `grammar` rewrites them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

from jinja2 import Undefined

from penstock.language.expressions.budget import MAX_BITS, Refused, fits, spend, spend_on
from penstock.language.expressions.lookup import as_key
from penstock.language.expressions.text import concatenate


def add(left: Any, right: Any) -> Any:
    if isinstance(left, str) and isinstance(right, str):
        spend(fits(len(left) + len(right)) >> 6)
    elif isinstance(left, str) or isinstance(right, str):
        hint = "Join texts with `~`, which turns both sides into text; or convert with `| int`."
        raise Refused("`+` does not join text and another kind of value", hint)
    elif isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        spend(len(left) + len(right))
        return [*left, *right]
    return left + right


def multiply(left: Any, right: Any) -> Any:
    for one, other in ((left, right), (right, left)):
        if isinstance(one, str) and isinstance(other, int):
            spend(fits(len(one) * max(0, other)) >> 6)
        elif isinstance(one, (list, tuple)) and isinstance(other, int):
            spend(len(one) * max(0, other))
        elif isinstance(one, bytes):
            raise Refused("bytes cannot be multiplied")
    if isinstance(left, int) and isinstance(right, int):
        _fits_bits(left.bit_length() + right.bit_length())
    return left * right


def power(left: Any, right: Any) -> Any:
    if not isinstance(left, (int, float)) or not isinstance(right, (int, float)):
        raise Refused("`**` takes numbers")
    if isinstance(left, int) and isinstance(right, int) and right > 0:
        _fits_bits(left.bit_length() * right)
    result = left**right
    if isinstance(result, complex):
        raise Refused("it takes a root of a negative number")
    return result


def remainder(left: Any, right: Any) -> Any:
    if isinstance(left, (str, bytes)):
        raise Refused("`%` does not format text here", "Join texts with `~`, or write them around `{{ }}`.")
    return left % right


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": add,
    "*": multiply,
    "**": power,
    "%": remainder,
}
"""The operators for which the sandbox asks here."""


def contains(container: Any, value: Any) -> bool:
    if isinstance(container, Mapping):
        return as_key(value) in container
    if isinstance(container, str):
        if not isinstance(value, (str, Undefined)):
            raise Refused("only text can be `in` a text")
        spend((len(container) + len(value)) >> 6)  # raises for an undefined value
    else:
        spend_on(container, value)
    return value in container


def _paid(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], bool]:
    def paid(left: Any, right: Any) -> bool:
        spend_on(left, right)
        return bool(compare(left, right))

    return paid


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": _paid(operator.eq),
    "ne": _paid(operator.ne),
    "gt": _paid(operator.gt),
    "gteq": _paid(operator.ge),
    "lt": _paid(operator.lt),
    "lteq": _paid(operator.le),
    "in": lambda left, right: contains(right, left),
    "notin": lambda left, right: not contains(right, left),
}
"""By Jinja's name of the operator."""


def compare(left: Any, *rest: Any) -> bool:
    """`compare(1, "lt", x, "lt", 9)` is `1 < x < 9`."""
    for name, right in zip(rest[::2], rest[1::2], strict=True):
        if not COMPARISONS[name](left, right):
            return False
        left = right
    return True


def text(*parts: Any) -> str:
    """`a ~ b ~ c`"""
    return concatenate(parts)


def each(values: Any, weight: int) -> Sequence[Any]:
    """Return the items of a `for` loop and charge them to the budget: `weight` steps a turn."""
    if isinstance(values, (Mapping, Set)):
        values = list(values)
    elif not isinstance(values, (list, tuple, str)):
        spend_on(values)  # raises for an undefined value
        raise Refused(f"a {type(values).__name__} cannot be looped over")
    spend(1 + len(values) * weight)
    return values  # type: ignore[no-any-return]


def key(value: Any) -> Any:
    """A computed key of a `{...}`."""
    return as_key(value)


def _fits_bits(bits: int) -> None:
    if bits > MAX_BITS:
        raise Refused(f"it makes an integer of more than {MAX_BITS:,} bits")
