"""Tests made of other tests."""

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
    additional: Test,
) -> Test:
    def fits(value: Any, budget: Budget) -> bool:
        if not isinstance(value, dict):
            return True
        budget.spend(len(value) * (1 + len(patterned)))
        if not required <= value.keys():
            return False
        for name, member in value.items():
            named = properties.get(name)
            if named is not None and not named(member, budget):
                return False
            is_other = named is None
            for pattern, test in patterned:
                if search(pattern, name, budget):
                    is_other = False
                    if not test(member, budget):
                        return False
            if is_other and not additional(member, budget):
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
