"""Tests that combine other tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.language.schemas.budget import Budget, too_costly
from penstock.language.schemas.patterns import search
from penstock.language.schemas.scalar_keywords import Test, anything


def object_with_patterns(
    properties: Mapping[str, Test],
    required: frozenset[str],
    patterned: Sequence[tuple[Any, Test]],
    other: Test,
) -> Test:
    def fits(value: Any, budget: Budget) -> bool:
        if not isinstance(value, dict):
            return True
        budget.spend(len(value) * (1 + len(patterned)))
        if not required <= value.keys():
            return False
        for name, item in value.items():
            tests = [properties[name]] if name in properties else []
            tests += [test for pattern, test in patterned if search(pattern, name, budget)]
            if not all(test(item, budget) for test in tests or [other]):
                return False
        return True

    return fits


def all_of(tests: Sequence[Test]) -> Test:
    tests = [test for test in tests if test is not anything]
    if len(tests) < 2:
        return tests[0] if tests else anything
    if len(tests) == 2:
        return _both(*tests)
    steps = len(tests)

    def fits(value: Any, budget: Budget) -> bool:
        budget.left -= steps
        if budget.left < 0:
            raise too_costly()
        for test in tests:  # noqa: SIM110 (a generator takes twice as long)
            if not test(value, budget):
                return False
        return True

    return fits


def _both(first: Test, second: Test) -> Test:
    def fits(value: Any, budget: Budget) -> bool:
        budget.left -= 2
        if budget.left < 0:
            raise too_costly()
        return first(value, budget) and second(value, budget)

    return fits
