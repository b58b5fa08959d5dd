"""The names and items that no other keyword has evaluated: those of `unevaluatedProperties` and `unevaluatedItems`."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import CheckTooCostly
from penstock.language.schemas import evaluated
from penstock.language.schemas.budget import Budget
from penstock.language.schemas.validator import Validator
from tests.penstock.language.schemas.two_libraries import disagreements

A: dict[str, Any] = {"type": "object", "properties": {"a": {}}}
B: dict[str, Any] = {"type": "object", "properties": {"b": {}}}
ABC = {"a": 1, "b": 2, "c": 3}
TEXT = {"type": "string"}
NAMES: dict[str, tuple[Any, dict[str, Any], list[str]]] = {
    "nothing looks": ({}, ABC, ["a", "b", "c"]),
    "properties": (A, ABC, ["b", "c"]),
    "properties that are not there": (A, {"b": 1}, ["b"]),
    "patternProperties": ({"patternProperties": {"^a": {}, "c": {}}}, {**ABC, "ab": 1}, ["b"]),
    "additionalProperties": ({"additionalProperties": {}}, ABC, []),
    "an inner unevaluatedProperties": ({"allOf": [{"unevaluatedProperties": True}]}, ABC, []),
    "required does not look": ({"required": ["a"]}, ABC, ["a", "b", "c"]),
    "allOf": ({"allOf": [A, B]}, ABC, ["c"]),
    "anyOf of what fits": ({"anyOf": [A, {**B, "required": ["z"]}]}, ABC, ["b", "c"]),
    "anyOf of all that fit": ({"anyOf": [A, B]}, ABC, ["c"]),
    "oneOf": ({"oneOf": [A, {**B, "required": ["z"]}]}, ABC, ["b", "c"]),
    "not does not look": ({"not": {**A, "required": ["z"]}}, ABC, ["a", "b", "c"]),
    "if that fits": ({"if": A, "then": B, "else": {"properties": {"c": {}}}}, ABC, ["c"]),
    "if that does not": (
        {"if": {**A, "required": ["z"]}, "then": B, "else": {"type": "object", "properties": {"c": {}}}}, ABC, ["a", "b"],
    ),
    "if alone": ({"if": A}, ABC, ["b", "c"]),
    "if alone that does not fit": ({"if": {**A, "required": ["z"]}}, ABC, ["a", "b", "c"]),
    "then of a condition that fits": ({"if": True, "then": A}, ABC, ["b", "c"]),
    "dependentSchemas": ({"dependentSchemas": {"c": A, "z": B}}, ABC, ["b", "c"]),
    "a reference": ({"$ref": "#/$defs/d", "$defs": {"d": A}}, ABC, ["b", "c"]),
    "branches within branches": ({"allOf": [{"anyOf": [A]}, {"allOf": [{"oneOf": [B]}]}]}, ABC, ["c"]),
    "branches of true and false": ({"anyOf": [True, False, A]}, ABC, ["b", "c"]),
}  # fmt: skip
ITEMS: dict[str, tuple[Any, list[Any], list[int]]] = {
    "nothing looks": ({}, [1, 2], [0, 1]),
    "items": ({"items": {}}, [1, 2], []),
    "an inner unevaluatedItems": ({"allOf": [{"unevaluatedItems": True}]}, [1, 2], []),
    "prefixItems": ({"prefixItems": [{}, {}]}, [1, 2, 3, 4], [2, 3]),
    "prefixItems of a shorter list": ({"prefixItems": [{}, {}]}, [1], []),
    "contains": ({"contains": TEXT}, [1, "x", 2, "y"], [0, 2]),
    "contains beside prefixItems": ({"prefixItems": [{}], "contains": TEXT}, [1, 2, "x"], [1]),
    "minItems does not look": ({"minItems": 1}, [1], [0]),
    "allOf": ({"allOf": [{"prefixItems": [{}]}, {"contains": TEXT}]}, [1, 2, "x"], [1]),
    "anyOf of what fits": ({"anyOf": [{"prefixItems": [{}]}, {"items": TEXT}]}, [1, 2], [1]),
    "oneOf": ({"oneOf": [{"prefixItems": [{}]}, {"items": TEXT}]}, [1, 2], [1]),
    "if that fits": ({"if": {"prefixItems": [{}]}, "then": {"prefixItems": [{}, {}]}}, [1, 2, 3], [2]),
    "if that does not": ({"if": {"items": TEXT}, "else": {"prefixItems": [{}]}}, [1, 2], [1]),
    "dependentSchemas, which are not of lists": ({"dependentSchemas": {"a": {"items": {}}}}, ["a"], [0]),
    "a reference": ({"$ref": "#/$defs/d", "$defs": {"d": {"prefixItems": [{}]}}}, [1, 2], [1]),
    "a branch of false": ({"anyOf": [False, {"prefixItems": [{}]}]}, [1, 2], [1]),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_names_that_nothing_looked_at_are_unevaluated(name: str) -> None:
    part, value, unevaluated = NAMES[name]
    schema = {**part, "unevaluatedProperties": False}
    assert evaluated.unevaluated_names(Validator(schema), schema, value, Budget()) == unevaluated
    rest = {key: item for key, item in value.items() if key not in unevaluated}
    assert disagreements(schema, [value, rest, [], 1]) == []
    assert (
        disagreements(
            {**part, "unevaluatedProperties": {"type": "integer"}}, [value, dict.fromkeys(value, "x")]
        )
        == []
    )


@pytest.mark.parametrize("name", ITEMS)
def test_items_that_nothing_looked_at_are_unevaluated(name: str) -> None:
    part, value, unevaluated = ITEMS[name]
    schema = {**part, "unevaluatedItems": False}
    assert evaluated.unevaluated_items(Validator(schema), schema, value, Budget()) == unevaluated
    assert Validator(schema).fits(value, Budget()) is not bool(unevaluated)
    assert disagreements(schema, [value, [], {}, 1]) == []
    assert disagreements({**part, "unevaluatedItems": TEXT}, [value, ["x"] * len(value)]) == []


def test_each_keyword_concerns_its_own_type() -> None:
    both = Validator({"unevaluatedProperties": False, "unevaluatedItems": {"type": "integer"}})
    assert both.fits({}, Budget())
    assert both.fits([1], Budget())
    assert not both.fits({"a": 1}, Budget())
    assert not both.fits(["x"], Budget())
    assert Validator({"unevaluatedItems": False}).fits({"a": 1}, Budget())
    assert Validator({"unevaluatedProperties": False}).fits([1], Budget())
    assert Validator({"unevaluatedProperties": True, "unevaluatedItems": True}).fits([1], Budget())


@pytest.mark.parametrize(
    ("part", "value", "steps"),
    [
        ({}, {"a": 1, "b": 1}, 7 + 8),
        ({"allOf": [A, True]}, {"a": 1, "b": 1}, (7 + 8) + 2 * 1 + (5 + 2 + 3) + 8),
        ({}, [1, 2], 7 + 8),
        ({"allOf": [{"prefixItems": [{}]}, True]}, [1, 2], (7 + 8) + 2 * 1 + (5 + 6) + 8),
    ],
)
def test_looking_costs_steps(part: Any, value: Any, steps: int) -> None:
    word = "unevaluatedProperties" if isinstance(value, dict) else "unevaluatedItems"
    look: Any = evaluated.unevaluated_names if isinstance(value, dict) else evaluated.unevaluated_items
    schema = {**part, word: False}
    budget, validator = Budget(1_000), Validator(schema)
    look(validator, schema, value, budget)
    assert budget.left == 1_000 - steps
    with pytest.raises(CheckTooCostly):
        look(validator, schema, value, Budget(steps - 1))


def test_lists_among_unevaluated_items_are_checked() -> None:
    validator = Validator({"unevaluatedItems": {"items": TEXT}})
    assert validator.fits([["a"], []], Budget(1000))
    assert not validator.fits([["a"], [1]], Budget(1000))
