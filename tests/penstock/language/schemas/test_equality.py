from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import CheckTooCostly
from penstock.language.schemas.budget import Budget
from penstock.language.schemas.equality import key

EQUAL = [
    (1, 1.0), (0, -0.0), ([1], [1.0]), ({"a": 1}, {"a": 1.0}), ({"a": 1, "b": [2.0]}, {"b": [2], "a": 1}),
    ([2**63], [2.0**63]), ([-(2**63)], [-(2.0**63)]), ([[{"a": 0}]], [[{"a": -0.0}]]), ([None], [None]),
    ([1e300], [1e300]), ([2.0**64], [2.0**64]), ([-(2.0**64)], [-(2.0**64)]),
]  # fmt: skip
DIFFERENT = [
    (1, True), (0, False), (1, "1"), (True, "true"), ([True], [1]), ([False], [0]), ([None], [0]), (None, 0), (None, False),
    (1.5, 1), ([1.5], [1]), ([1, 2], [2, 1]), ({"a": 1}, {"a": 2}), ({"a": 1}, {"b": 1}), ([], {}), ([], None), ("", None),
    ([[1], 2], [1, [2]]), (True, False), ("[]", []), ({"a": None}, {}), ([1e300], [2e300]),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second"), EQUAL)
def test_values_that_are_equal_in_json_have_one_key(first: Any, second: Any) -> None:
    assert key(first) == key(second)
    assert hash(key(first)) == hash(key(second))
    assert key(first, Budget()) == key(first)


@pytest.mark.parametrize(("first", "second"), DIFFERENT)
def test_values_that_differ_in_json_have_two_keys(first: Any, second: Any) -> None:
    assert key(first) != key(second)


@pytest.mark.parametrize(
    ("value", "steps"),
    [
        (1, 0),
        ("x" * 100, 0),
        (True, 0),
        ([], 25),
        ({}, 25),
        ([1, 2], 20 + 3 * 5),
        ({"a": 1, "b": None}, 20 + 3 * 5 + 2),
        (["x" * 39], 20 + 2 * 5),
        (["x" * 40], 20 + 2 * 5 + 1),
        (["x" * 400], 20 + 2 * 5 + 10),
        ([{"a": ["x" * 80]}], 20 + 4 * 5 + 1 + 2),
    ],
)
def test_key_of_a_container_costs_its_values_and_characters(value: Any, steps: int) -> None:
    budget = Budget(1_000)
    key(value, budget)
    assert budget.left == 1_000 - steps
    key(value, Budget(steps))
    if steps:
        with pytest.raises(CheckTooCostly):
            key(value, Budget(steps - 1))


def test_container_that_costs_too_much_is_not_walked_to_its_end() -> None:
    class Items(list[Any]):
        def __iter__(self) -> Any:
            raise AssertionError("it was walked")

    with pytest.raises(CheckTooCostly):
        key([Items([1]), *range(100)], Budget(100))
