"""The guarded operators of expressions, where Python's own could run for ever or use up the memory.

The sandbox's hook calls those of `+ * ** %`. The rewritten syntax tree (`permitted_syntax`) calls those of `~`,
comparisons of unknown values, the start of a loop, and computed keys of a `{...}`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

from jinja2 import Undefined

from penstock.language.expressions.budget import MAX_BITS, Refused, fits, refuse_stored, spend, spend_on
from penstock.language.expressions.lookup import as_key
from penstock.language.expressions.text import concatenate


def add(first: Any, second: Any) -> Any:
    if isinstance(first, str) and isinstance(second, str):
        spend(fits(len(first) + len(second)) >> 6)
    elif isinstance(first, str) or isinstance(second, str):
        hint = "Join texts with `~`, which turns both sides into text; or convert with `| int`."
        raise Refused("`+` does not join text and another kind of value", hint)
    elif isinstance(first, (list, tuple)) and isinstance(second, (list, tuple)):
        spend(len(first) + len(second))
        return [*first, *second]
    return first + second


def multiply(first: Any, second: Any) -> Any:
    for value, other in ((first, second), (second, first)):
        if isinstance(value, str) and isinstance(other, int):
            spend(fits(len(value) * max(0, other)) >> 6)
        elif isinstance(value, (list, tuple)) and isinstance(other, int):
            spend(len(value) * max(0, other))
        elif isinstance(value, bytes):
            raise Refused("bytes cannot be multiplied")
    if isinstance(first, int) and isinstance(second, int):
        _fits_bits(first.bit_length() + second.bit_length())
    return first * second


def power(base: Any, exponent: Any) -> Any:
    if not isinstance(base, (int, float)) or not isinstance(exponent, (int, float)):
        raise Refused("`**` takes numbers")
    if isinstance(base, int) and isinstance(exponent, int) and exponent > 0:
        _fits_bits(base.bit_length() * exponent)
    result = base**exponent
    if isinstance(result, complex):
        raise Refused("it takes a root of a negative number")
    return result


def remainder(value: Any, divisor: Any) -> Any:
    if isinstance(value, (str, bytes)):
        raise Refused("`%` does not format text here", "Join texts with `~`, or write them around `{{ }}`.")
    return value % divisor


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": add,
    "*": multiply,
    "**": power,
    "%": remainder,
}
"""The binary operators that the sandbox's hook calls."""


def contains(container: Any, value: Any) -> bool:
    refuse_stored(container)
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
    def paid(first: Any, second: Any) -> bool:
        spend_on(first, second)
        return bool(compare(first, second))

    return paid


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": _paid(operator.eq),
    "ne": _paid(operator.ne),
    "gt": _paid(operator.gt),
    "gteq": _paid(operator.ge),
    "lt": _paid(operator.lt),
    "lteq": _paid(operator.le),
    "in": lambda first, second: contains(second, first),
    "notin": lambda first, second: not contains(second, first),
}
"""The comparison operators, by Jinja's name."""


def compare(value: Any, *pairs: Any) -> bool:
    """Return the result of a chain of comparisons: `compare(1, "lt", x, "lt", 9)` is `1 < x < 9`."""
    for name, operand in zip(pairs[::2], pairs[1::2], strict=True):
        if not COMPARISONS[name](value, operand):
            return False
        value = operand
    return True


def text(*parts: Any) -> str:
    """Return the parts as one text: `a ~ b ~ c`."""
    return concatenate(parts)


def each(values: Any, weight: int) -> Sequence[Any]:
    """Return the items of a `for` loop and charge them to the budget, `weight` steps an iteration."""
    refuse_stored(values)
    if isinstance(values, (Mapping, Set)):
        values = list(values)
    elif not isinstance(values, (list, tuple, str)):
        spend_on(values)  # raises for an undefined value
        raise Refused(f"a {type(values).__name__} cannot be looped over")
    spend(1 + len(values) * weight)
    return values  # type: ignore[no-any-return]


def key(value: Any) -> Any:
    """Return a computed key of a `{...}`. Raises Refused if it cannot be a key."""
    return as_key(value)


def _fits_bits(bits: int) -> None:
    if bits > MAX_BITS:
        raise Refused(f"it makes an integer of more than {MAX_BITS:,} bits")
