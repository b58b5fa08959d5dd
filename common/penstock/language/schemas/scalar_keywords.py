"""The keywords of JSON Schema that contain no schemas. Each becomes a test of a value."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

from penstock.language.schemas import formats
from penstock.language.schemas.budget import FORMAT_STEPS, Budget
from penstock.language.schemas.equality import key
from penstock.language.schemas.patterns import compiled, search

Test = Callable[[Any, Budget], bool]
"""A function that returns whether a value fits, within a budget."""


def anything(value: Any, budget: Budget) -> bool:
    return True


def nothing(value: Any, budget: Budget) -> bool:
    return False


def _integer(value: Any, budget: Budget) -> bool:
    return value.__class__ is int or (value.__class__ is float and value.is_integer())


def _number(value: Any, budget: Budget) -> bool:
    return value.__class__ is int or value.__class__ is float


def _is_number(value: Any) -> bool:
    return value.__class__ is int or value.__class__ is float


TYPES: Mapping[str, Test] = {
    "object": lambda value, budget: isinstance(value, dict),
    "array": lambda value, budget: isinstance(value, list),
    "string": lambda value, budget: isinstance(value, str),
    "integer": _integer,
    "number": _number,
    "boolean": lambda value, budget: isinstance(value, bool),
    "null": lambda value, budget: value is None,
}


def _type(names: Any) -> Test:
    tests = [TYPES[name] for name in ([names] if isinstance(names, str) else names)]
    if len(tests) == 1:
        return tests[0]

    def fits(value: Any, budget: Budget) -> bool:
        budget.left -= len(tests)
        for test in tests:  # noqa: SIM110 (a generator takes twice as long)
            if test(value, budget):
                return True
        return False

    return fits


def _enum(choices: Sequence[Any]) -> Test:
    allowed_keys = frozenset(map(key, choices))
    if not any(isinstance(choice, Mapping | list) for choice in choices):
        return lambda value, budget: _is_one_of(allowed_keys, value, budget)
    return lambda value, budget: key(value, budget) in allowed_keys


def _is_one_of(allowed_keys: frozenset[Hashable], value: Any, budget: Budget) -> bool:
    """Return whether a value is one of the allowed scalars."""
    if isinstance(value, str):
        return value in allowed_keys
    budget.left -= 1
    return not isinstance(value, dict | list) and key(value) in allowed_keys


def _pattern(pattern: str) -> Test:
    search_pattern = compiled(pattern)
    return lambda value, budget: not isinstance(value, str) or search(search_pattern, value, budget)


def _format(name: Any) -> Test:
    if name not in formats.FORMATS:
        return anything

    def fits(value: Any, budget: Budget) -> bool:
        if not isinstance(value, str):
            return True
        budget.spend(FORMAT_STEPS + len(value) // 8)
        return formats.fits(name, value)

    return fits


def _multiple_of(factor: Any) -> Test:
    def fits(value: Any, budget: Budget) -> bool:
        if not _is_number(value):
            return True
        budget.left -= 1
        if not isinstance(factor, float):
            return not value % factor
        quotient = value / factor
        try:
            return bool(int(quotient) == quotient)
        except OverflowError:
            budget.spend(100)
            return (Fraction(value) / Fraction(factor)).denominator == 1

    return fits


def _unique_items(is_required: bool) -> Test:
    def fits(value: Any, budget: Budget) -> bool:
        if not isinstance(value, list):
            return True
        budget.spend(2 * len(value))
        keys = set()
        for item in value:
            keys.add(key(item, budget))
        return len(keys) == len(value)

    return fits if is_required else anything


def _dependent_required(names: Mapping[str, Sequence[str]]) -> Test:
    required = {name: frozenset(dependents) for name, dependents in names.items()}

    def fits(value: Any, budget: Budget) -> bool:
        if not isinstance(value, dict):
            return True
        budget.spend(1 + 2 * len(required))
        return all(name not in value or dependents <= value.keys() for name, dependents in required.items())

    return fits


def _bound_of_numbers(holds: Callable[[Any, Any], bool], bound: Any) -> Test:
    return lambda value, budget: not _is_number(value) or holds(value, bound)


def _bound_of_length(
    kind: type[str | list[Any] | dict[str, Any]], holds: Callable[[int, Any], bool], bound: Any
) -> Test:
    return lambda value, budget: not isinstance(value, kind) or holds(len(value), bound)


KEYWORDS: Mapping[str, Callable[[Any], Test]] = {
    "type": _type,
    "enum": _enum,
    "const": lambda choice: _enum([choice]),
    "pattern": _pattern,
    "format": _format,
    "multipleOf": _multiple_of,
    "uniqueItems": _unique_items,
    "dependentRequired": _dependent_required,
    "minimum": partial(_bound_of_numbers, operator.ge),
    "maximum": partial(_bound_of_numbers, operator.le),
    "exclusiveMinimum": partial(_bound_of_numbers, operator.gt),
    "exclusiveMaximum": partial(_bound_of_numbers, operator.lt),
    "minLength": partial(_bound_of_length, str, operator.ge),
    "maxLength": partial(_bound_of_length, str, operator.le),
    "minItems": partial(_bound_of_length, list, operator.ge),
    "maxItems": partial(_bound_of_length, list, operator.le),
    "minProperties": partial(_bound_of_length, dict, operator.ge),
    "maxProperties": partial(_bound_of_length, dict, operator.le),
}
