"""Keywords that hold no schemas: a value on each side of every border. Both libraries agree with each verdict."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.language.schemas import scalar_keywords
from penstock.language.schemas.budget import Budget
from tests.penstock.language.schemas.two_libraries import disagreements

BORDERS: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "object": ({"type": "object"}, [{}, {"a": 1}], [[], "", 1, None, True]),
    "array": ({"type": "array"}, [[], [1]], [{}, "", 1, None, True]),
    "string": ({"type": "string"}, ["", "a"], [[], {}, 1, None, True]),
    "integer": ({"type": "integer"}, [1, 0, -1, 1.0, 2**63], [1.5, True, False, "1", None, [], {}]),
    "number": ({"type": "number"}, [1, 1.0, 1.5, -2.5, 0], [True, False, "1", None, [], {}]),
    "boolean": ({"type": "boolean"}, [True, False], [1, 0, "true", None, [], {}]),
    "null": ({"type": "null"}, [None], [False, 0, "", [], {}]),
    "one of three types": ({"type": ["string", "null", "array"]}, ["a", None, []], [1, {}, True]),
    "a list of one type": ({"type": ["string"]}, ["a"], [1, None]),
    "enum of scalars": ({"enum": ["a", 1, None, False]}, ["a", 1, 1.0, None, False], ["b", 2, 0, True, [], {}, "1", [1]]),
    "enum with a list": ({"enum": [[1], "a"]}, [[1], [1.0], "a"], [1, [], [True], [1, 1], {}, "b"]),
    "enum with an object": ({"enum": [{"a": [1], "b": 2}]}, [{"b": 2, "a": [1]}, {"a": [1.0], "b": 2.0}], [{"a": [1]}, {}, []]),
    "const of true": ({"const": True}, [True], [1, 1.0, "true", False, None]),
    "const of one": ({"const": 1}, [1, 1.0], [True, "1", 2]),
    "const of null": ({"const": None}, [None], [0, False, ""]),
    "const of a list": ({"const": [0, False]}, [[0, False], [0.0, False]], [[False, 0], [0], [0, 0], 0]),
    "pattern": ({"pattern": "b.d"}, ["abcde", "bcd", 1, None, ["x"]], ["", "bd", "BCD"]),
    "format": ({"format": "date"}, ["2030-01-02", 1, None, []], ["2030-13-01", "", "x"]),
    "format of an address": ({"format": "ipv4"}, ["10.0.0.1", 1], ["10.0.0.256", "1"]),
    "format that describes": ({"format": "email"}, ["x", "", 1], []),
    "multipleOf": ({"multipleOf": 3}, [0, 3, -6, 3.0, "x", None, True], [1, 4, 3.5]),
    "multipleOf of a double": ({"multipleOf": 0.5}, [1, 0.5, -1.5, 0, "x"], [0.25, 0.7]),
    "multipleOf of one as a double": ({"multipleOf": 1.0}, [1, 2.0, 2**63], [1.5]),
    "uniqueItems": (
        {"uniqueItems": True}, [[], [1], [1, 2], [1, True, "1"], [[1], [2]], [{"a": 1}, {"a": 2}], "aa", {}],
        [[1, 1], [1, 1.0], [1, 2, 1], [[1], [1.0]], [{"a": 1, "b": 2}, {"b": 2, "a": 1}], [None, None]],
    ),
    "uniqueItems that is not wanted": ({"uniqueItems": False}, [[1, 1]], []),
    "dependentRequired": (
        {"dependentRequired": {"a": ["b", "c"], "d": []}}, [{}, {"b": 1}, {"a": 1, "b": 1, "c": 1}, {"d": 1}, [], "a", ["a"]],
        [{"a": 1}, {"a": 1, "b": 1}, {"a": None, "c": 1, "d": 1}],
    ),
    "dependentRequired of the name itself": ({"dependentRequired": {"a": ["a"]}}, [{"a": 1}, {}], []),
    "minimum": ({"minimum": 2}, [2, 2.0, 3, 2**63, "x", None, True, False, []], [1, 1.999, -5]),
    "maximum": ({"maximum": 2}, [2, 2.0, 1, -5, "x", None, True, []], [3, 2.001]),
    "exclusiveMinimum": ({"exclusiveMinimum": 2}, [2.001, 3, "x", False], [2, 2.0, 1]),
    "exclusiveMaximum": ({"exclusiveMaximum": 0}, [-0.001, -3, "x", True], [0, 0.0, 1]),
    "minLength": ({"minLength": 2}, ["ab", "abc", "\u00e4\U0001f600", 1, [], None], ["", "a", "\U0001f600"]),
    "maxLength": ({"maxLength": 2}, ["", "ab", "\U0001f600\U0001f600", 333, [1, 2, 3]], ["abc"]),
    "minItems": ({"minItems": 2}, [[1, 2], [1, 2, 3], "a", {}, 1], [[], [1]]),
    "maxItems": ({"maxItems": 1}, [[], [1], "abc", {"a": 1, "b": 2}], [[1, 2]]),
    "minProperties": ({"minProperties": 1}, [{"a": 1}, [], "", 0], [{}]),
    "maxProperties": ({"maxProperties": 1}, [{}, {"a": 1}, [1, 2], "abc"], [{"a": 1, "b": 2}]),
}  # fmt: skip


@pytest.mark.parametrize("name", BORDERS)
def test_keyword_takes_fitting_values_alone(name: str) -> None:
    schema, fitting, unfit = BORDERS[name]
    tests = [scalar_keywords.KEYWORDS[word](expected) for word, expected in schema.items()]
    for value in fitting:
        assert all(test(value, Budget()) for test in tests), value
    for value in unfit:
        assert not all(test(value, Budget()) for test in tests), value
    assert disagreements(schema, fitting + unfit) == []


def test_every_keyword_without_schemas_has_borders() -> None:
    assert {word for schema, _, _ in BORDERS.values() for word in schema} == scalar_keywords.KEYWORDS.keys()


@pytest.mark.parametrize(
    ("factor", "value", "is_multiple"),
    [(0.5, 1e308, True), (2.0**-1000, -1e308, True), (1e-5, 1e308, False), (0.3, -1e308, False)],
)
def test_multiple_beyond_the_range_of_doubles_is_exact(
    factor: float, value: float, is_multiple: bool
) -> None:
    assert scalar_keywords.KEYWORDS["multipleOf"](factor)(value, Budget()) is is_multiple


def test_anything_fits_and_nothing_does_not() -> None:
    assert scalar_keywords.anything(1, Budget()) is True
    assert scalar_keywords.nothing(1, Budget()) is False
