"""The cost limits of an expression. Steps are counted instead of seconds, so that the outcome is the same on every
machine.

A step is at most about a microsecond of work. An operation that walks through a value (compare, sort, convert to text)
first pays for the value's size. A loop first pays for its length times its body. A small value that refers to itself
many times over (`[a, a]` of `[b, b]` of ...) therefore costs what its text would.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Set
from datetime import date, datetime, timedelta
from typing import Any

from jinja2 import Undefined

from penstock.language.terms.stored_references import KEY, is_reference

MAX_SOURCE = 16_384
"""The maximum length of a template with expressions, in characters."""
MAX_DEPTH = 64
"""The maximum nesting of parentheses, operators and blocks."""
MAX_STEPS = 500_000
"""The maximum number of steps of one rendering, over all expressions of the structure."""
MAX_TEXT = 1_048_576
"""The maximum length of any text that an expression makes, in characters."""
MAX_BITS = 4_096
"""The maximum size of an integer that `*` or `**` makes, in bits."""
MAX_RANGE = 100_000
"""The maximum number of items of a `range`."""

_PLAIN = frozenset({int, float, bool, type(None), datetime, date, timedelta})


class Refused(Exception):
    """The refusal of an operation that is not permitted or costs too much. The refusal becomes an ExpressionError that
    names the expression."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


def refuse_stored(value: Any) -> None:
    """Raise Refused for a reference to a result in the result store. An expression passes it on, and cannot compute
    with the result: it would compute with the reference."""
    if type(value) is dict and len(value) == 2 and KEY in value and is_reference(value):
        raise Refused(
            "it is in the result store, which expressions cannot read",
            "Pass the whole value to an action, which can read its parts.",
        )


class _Meter(threading.local):
    remaining_steps = MAX_STEPS


_meter = _Meter()


class budget:
    """A context manager that gives the code of its block a fresh budget of steps, also inside another budget."""

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        self._before = _meter.remaining_steps
        _meter.remaining_steps = MAX_STEPS

    def __exit__(self, *error: object) -> None:
        _meter.remaining_steps = self._before


def spend(steps: int) -> None:
    """Charge `steps` to the open budget. Raises Refused if it is used up."""
    _meter.remaining_steps -= steps
    if _meter.remaining_steps < 0:
        raise _too_many_steps()


def spend_on(*values: Any, passed_on: bool = False) -> None:
    """Charge the full size of each value to the budget. Raises Refused, also for a part that is in the result store
    unless the values are only `passed_on`, and MissingName for an undefined part."""
    budget = _meter.remaining_steps - len(values)
    stack = list(values)
    while stack and budget >= 0:
        value = stack.pop()
        kind = type(value)
        if kind in _PLAIN:
            continue
        if kind is dict or isinstance(value, Mapping):
            if not passed_on:
                refuse_stored(value)
            budget -= 2 * len(value)
            if budget >= 0:  # stop before the stack grows beyond the budget
                stack.extend(value.keys())
                stack.extend(value.values())
        elif isinstance(value, (list, tuple, Set)):
            budget -= len(value)
            if budget >= 0:
                stack.extend(value)
        elif isinstance(value, (str, bytes)):
            budget -= len(value) >> 6
        elif isinstance(value, Undefined):
            bool(value)  # raises, with an explanation
    _meter.remaining_steps = budget
    if budget < 0:
        raise _too_many_steps()


def _too_many_steps() -> Refused:
    return Refused(
        f"it takes more than {MAX_STEPS:,} steps",
        "Do the heavy part in an action, and keep expressions for picking and comparing values.",
    )


def fits(length: int) -> int:
    """Return `length`. Raises Refused if a text may not have as many characters."""
    if length > MAX_TEXT:
        raise Refused(f"it makes a text of more than {MAX_TEXT:,} characters")
    return length
