"""Keywords that hold schemas: a value on each side of every border. Both libraries agree with each verdict."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import DefinitionError
from penstock.language.schemas.budget import Budget
from penstock.language.schemas.faults import faults
from penstock.language.schemas.validator import _COMPOSED, Validator
from tests.penstock.language.schemas.two_libraries import Verdicts

INT, TEXT, NULL = {"type": "integer"}, {"type": "string"}, {"type": "null"}
D = {
    "$defs": {
        "i": INT,
        "t": True,
        "f": False,
        "n": {"items": {"$ref": "#/$defs/n"}, "type": ["array", "null"]},
    }
}
BORDERS: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "properties": ({"properties": {"a": INT, "b": TEXT}}, [{}, {"a": 1, "b": "x"}, {"c": 0}, [], 1], [{"a": "x"}, {"b": 1}]),
    "properties of false": ({"properties": {"a": False}}, [{}, {"b": 1}], [{"a": 1}]),
    "required": ({"required": ["a", "b"]}, [{"a": 1, "b": None}, {"a": 1, "b": 1, "c": 1}, [], 1], [{}, {"a": 1}, {"c": 1}]),
    "no names are required": ({"required": []}, [{}, {"a": 1}], []),
    "additionalProperties": (
        {"properties": {"a": TEXT}, "additionalProperties": INT}, [{}, {"a": "x"}, {"a": "x", "b": 1}, []],
        [{"a": 1}, {"b": "x"}, {"a": "x", "b": 1, "c": "x"}],
    ),
    "no other names": ({"properties": {"a": {}}, "additionalProperties": False}, [{}, {"a": 1}, 3], [{"b": 1}, {"a": 1, "b": 1}]),
    "no names at all": ({"additionalProperties": False}, [{}, [1]], [{"a": 1}]),
    "patternProperties": (
        {"patternProperties": {"^a": INT, "b$": {"minimum": 3}}}, [{}, {"a": 1}, {"b": 3}, {"ab": 3}, {"c": "x"}, ["a"]],
        [{"a": "x"}, {"b": 2}, {"ab": 2}, {"ab": 3.5}, {"c": 1, "a": "x"}],
    ),
    "a pattern beside a name": (
        {"properties": {"a": {"minimum": 3}}, "patternProperties": {"^a": INT}}, [{"a": 3}], [{"a": 2}, {"a": 3.5}],
    ),
    "others than those of a pattern": (
        {"properties": {"c": {}}, "patternProperties": {"^a": {}}, "additionalProperties": INT, "required": ["a"]},
        [{"a": "x"}, {"a": "x", "b": 1, "c": "x"}], [{}, {"c": 1}, {"a": "x", "b": "x"}],
    ),
    "no others than those of a pattern": (
        {"patternProperties": {"^a": {}}, "additionalProperties": False}, [{"a": 1, "ab": 1}], [{"b": 1}, {"a": 1, "b": 1}],
    ),
    "propertyNames": ({"propertyNames": {"maxLength": 1}}, [{}, {"a": 1, "b": 2}, ["long"]], [{"ab": 1}, {"a": 1, "bb": 2}]),
    "propertyNames of false": ({"propertyNames": False}, [{}, []], [{"a": 1}]),
    "items": ({"items": INT}, [[], [1, 2], {}, "x"], [["x"], [1, "x"], ["x", 1]]),
    "items of false": ({"items": False}, [[], {"a": 1}], [[1]]),
    "items beyond a prefix": (
        {"prefixItems": [TEXT, TEXT], "items": INT}, [[], ["x"], ["x", "x"], ["x", "x", 1, 2]], [[1], ["x", 1], ["x", "x", "x"]],
    ),
    "prefixItems": ({"prefixItems": [INT, True, TEXT]}, [[], [1], [1, None, "x", 0], {}, 1], [["x"], [1, 0, 0], ["x", 1]]),
    "contains": ({"contains": INT}, [[1], ["x", 1], [1, 1], {}, "x"], [[], ["x"], [1.5, None]]),
    "contains of true": ({"contains": True}, [[1]], [[]]),
    "contains of false": ({"contains": False}, [{}], [[], [1]]),
    "minContains": ({"contains": INT, "minContains": 2}, [[1, 2], [1, "x", 2, 3], {}], [[], [1], ["x", 1, "x"]]),
    "minContains of none": ({"contains": INT, "minContains": 0}, [[], ["x"], [1]], []),
    "maxContains": ({"contains": INT, "maxContains": 2}, [[1], [1, 2, "x"]], [[], ["x"], [1, 2, 3], ["x", 1, 2, 3]]),
    "minContains and maxContains": (
        {"contains": INT, "minContains": 1, "maxContains": 1}, [[1], ["x", 1]], [[], [1, 2], ["x"]],
    ),
    "minContains of none and maxContains": ({"contains": INT, "minContains": 0, "maxContains": 1}, [[], [1], ["x"]], [[1, 2]]),
    "bounds without contains": ({"minContains": 3, "maxContains": 0}, [[], [1]], []),
    "allOf": ({"allOf": [INT, {"minimum": 3}]}, [3, 4], [2, 3.5, "x"]),
    "allOf of one": ({"allOf": [INT]}, [3], ["x"]),
    "allOf of four": ({"allOf": [INT, {"minimum": 3}, {"maximum": 5}, {"multipleOf": 2}]}, [4], [2, 3, 6, 4.5, "x"]),
    "allOf of true and false": ({"allOf": [True, False]}, [], [1]),
    "anyOf": ({"anyOf": [INT, {"minLength": 2}]}, [1, "xx", None], ["x"]),
    "anyOf of three": ({"anyOf": [NULL, TEXT, INT]}, [None, "x", 1], [1.5, []]),
    "anyOf of false": ({"anyOf": [False]}, [], [1]),
    "oneOf": ({"oneOf": [INT, {"minimum": 3}]}, [1, 3.5], [3, 2.5]),
    "oneOf of three": ({"oneOf": [{"minimum": 1}, {"minimum": 2}, {"minimum": 3}]}, [1], [0, 2, 3]),
    "not": ({"not": INT}, ["x", 1.5, None], [1]),
    "not of false": ({"not": False}, [1], []),
    "if, then and else": ({"if": INT, "then": {"minimum": 3}, "else": {"minLength": 2}}, [3, "xx", None], [2, "x"]),
    "if and then": ({"if": INT, "then": {"minimum": 3}}, [3, "x"], [2]),
    "if and else": ({"if": INT, "else": {"minLength": 2}}, [2, "xx"], ["x"]),
    "if alone": ({"if": INT}, [2, "x"], []),
    "else of items": ({"if": INT, "else": {"items": INT}}, [[1]], [["x"]]),
    "then of items": ({"if": {"items": INT}, "then": {"contains": INT}}, [[1], ["x"]], [[]]),
    "if of false": ({"if": False, "then": False}, [1], []),
    "then and else alone": ({"then": False, "else": False}, [1, "x"], []),
    "dependentSchemas": (
        {"dependentSchemas": {"a": {"required": ["b"]}, "c": False}}, [{}, {"b": 1}, {"a": 1, "b": 1}, [], ["a"], "a"],
        [{"a": 1}, {"c": 1}, {"a": 1, "b": 1, "c": 1}],
    ),
    "a reference": ({"$ref": "#/$defs/i", **D}, [1], ["x", None]),
    "a reference beside a keyword": ({"$ref": "#/$defs/i", "minimum": 3, **D}, [3], [2, "x"]),
    "a reference to true": ({"$ref": "#/$defs/t", **D}, [1, "x"], []),
    "a reference to false": ({"$ref": "#/$defs/f", **D}, [], [1, "x"]),
    "a reference to itself": ({"$ref": "#/$defs/n", **D}, [None, [], [[None, []], None]], [1, [1], [[None, [1]]]]),
    "a reference into a part that leads back to it": (
        {
            "$ref": "#/$defs/q/properties/a",
            "$defs": {"q": {"type": "object", "properties": {"a": {"$ref": "#/$defs/q"}}}},
        },
        [{}, {"a": {}}, {"a": {"a": {}}}], [1, {"a": 1}, {"a": {"a": 1}}],
    ),
    "two references to one part": (
        {"properties": {"a": {"$ref": "#/$defs/i"}, "b": {"$ref": "#/$defs/i"}}, **D}, [{"a": 1, "b": 2}],
        [{"a": 1, "b": "x"}, {"a": "x", "b": 1}],
    ),
    "references to two parts at one value": (
        {"allOf": [{"$ref": "#/$defs/i"}] * 2 + [{"$ref": "#/$defs/n"}] * 2, **D}, [], [1, None, []],
    ),
    "two references at one value": (
        {"allOf": [{"$ref": "#/$defs/i"}, {"not": {"$ref": "#/$defs/i"}}], **D}, [], [1, "x"],
    ),
    "a reference to the document": (
        {"properties": {"a": {"$ref": "#"}}, "additionalProperties": False, "required": []}, [{}, {"a": {}}, {"a": {"a": 1}}],
        [{"b": 1}, {"a": {"b": 1}}, {"a": {"a": {"b": 1}}}],
    ),
    "a part that says nothing": ({"title": "t", "items": {}, "properties": {}}, [[1], {"a": 1}, 1], []),
    "no keyword": ({}, [1, None, {}], []),
}  # fmt: skip


def _words(node: Any) -> set[str]:
    if isinstance(node, dict):
        return set(node).union(*map(_words, node.values()))
    return set().union(*map(_words, node)) if isinstance(node, list) else set()


@pytest.mark.parametrize("name", BORDERS)
def test_keyword_takes_fitting_values_alone(name: str) -> None:
    schema, fitting, unfit = BORDERS[name]
    validator, libraries = Validator(schema), Verdicts(schema)
    for value in fitting:
        assert validator.fits(value, Budget()) is True, value
        assert list(faults(validator, value, Budget())) == []
        assert set(libraries.of(value).values()) == {True}
    for value in unfit:
        assert validator.fits(value, Budget()) is False, value
        assert list(faults(validator, value, Budget())) != [], value
        assert set(libraries.of(value).values()) == {False}


def test_every_keyword_with_schemas_has_borders() -> None:
    assert _COMPOSED.keys() <= {word for schema, _, _ in BORDERS.values() for word in _words(schema)}


def test_reference_to_nothing_is_told_when_a_value_is_checked() -> None:
    validator = Validator({"properties": {"a": {"$ref": "#/$defs/none"}}})
    assert validator.fits({"b": 1}, Budget())
    with pytest.raises(
        DefinitionError, match="the schema refers to '#/\\$defs/none', which is not a part of the schema"
    ) as refused:
        validator.fits({"a": 1}, Budget())
    assert refused.value.hint == "Correct the schema, and apply it again."


def test_verdict_is_a_boolean_of_every_test() -> None:
    for schema, fitting, unfit in BORDERS.values():
        for word in ("anyOf", "oneOf", "not", "contains"):
            if word in schema:
                test = Validator(schema).words_of(schema)[word]
                assert {test(value, Budget()) for value in fitting} <= {True}
                assert all(test(value, Budget()) in (True, False) for value in unfit)
