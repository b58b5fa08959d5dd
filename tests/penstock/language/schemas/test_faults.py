"""The faults of a value: which keyword, at which place, with which names."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import CheckTooCostly
from penstock.language.schemas.budget import Budget
from penstock.language.schemas.faults import faults
from penstock.language.schemas.validator import Validator

INT = {"type": "integer"}
ExpectedFault = tuple[tuple[str | int, ...], str | None]
FAULTS: dict[str, tuple[Any, Any, list[ExpectedFault]]] = {
    "a type": (INT, "x", [((), "type")]),
    "two keywords of one value": ({"minimum": 3, "multipleOf": 2, "type": "integer"}, 1, [((), "minimum"), ((), "multipleOf")]),
    "nothing": ({"items": False}, [1], [((0,), None)]),
    "a property": ({"properties": {"a": INT, "b": INT}}, {"a": "x", "b": 1}, [(("a",), "type")]),
    "two properties": ({"properties": {"a": INT, "b": INT}}, {"a": "x", "b": "x"}, [(("a",), "type"), (("b",), "type")]),
    "a property of a property": ({"properties": {"a": {"properties": {"b": INT}}}}, {"a": {"b": "x"}}, [(("a", "b"), "type")]),
    "a pattern": ({"patternProperties": {"^a": INT}}, {"a": "x", "b": "x"}, [(("a",), "type")]),
    "a pattern beside a name": (
        {"properties": {"a": {"minLength": 2}}, "patternProperties": {"^a": INT}}, {"a": "x"},
        [(("a",), "minLength"), (("a",), "type")],
    ),
    "other names": ({"properties": {"a": {}}, "additionalProperties": INT}, {"a": "x", "b": "x"}, [(("b",), "type")]),
    "other names than those of a pattern": (
        {"patternProperties": {"^a": {}}, "additionalProperties": INT}, {"a": "x", "b": "x"}, [(("b",), "type")],
    ),
    "names of properties": ({"propertyNames": {"maxLength": 1}}, {"a": 1, "bb": 2}, [((), "maxLength")]),
    "names by a schema of false": ({"propertyNames": False}, {"a": 1}, [((), None)]),
    "an item": ({"items": INT}, [1, "x", 2, "y"], [((1,), "type"), ((3,), "type")]),
    "an item of the prefix": (
        {"prefixItems": [INT, True, INT], "items": INT}, ["x", "x", 1, "x"],
        [((0,), "type"), ((3,), "type")],
    ),
    "an item beyond a prefix": ({"prefixItems": [{}], "items": False}, ["x", 1], [((1,), None)]),
    "unevaluated items": (
        {"prefixItems": [{}], "unevaluatedItems": INT}, ["x", "x", 1, "x"], [((1,), "type"), ((3,), "type")],
    ),
    "no unevaluated items": ({"unevaluatedItems": False}, [1], [((0,), None)]),
    "unevaluated names": (
        {"properties": {"a": {}}, "unevaluatedProperties": INT}, {"a": "x", "b": "x", "c": 1}, [(("b",), "type")],
    ),
    "all of": ({"allOf": [INT, {"maximum": 3}, True]}, 4.5, [((), "type"), ((), "maximum")]),
    "any of, which is told as a whole": ({"anyOf": [INT, {"type": "null"}]}, "x", [((), "anyOf")]),
    "one of": ({"oneOf": [INT, {"minimum": 0}]}, 1, [((), "oneOf")]),
    "not": ({"not": INT}, 1, [((), "not")]),
    "contains": ({"contains": INT}, ["x"], [((), "contains")]),
    "a reference": ({"$ref": "#/$defs/d", "$defs": {"d": INT}}, "x", [((), "type")]),
    "a reference to false": ({"$ref": "#/$defs/d", "$defs": {"d": False}}, "x", [((), None)]),
    "then": ({"if": INT, "then": {"minimum": 3}, "else": {"minLength": 3}}, 1, [((), "minimum")]),
    "else": ({"if": INT, "then": {"minimum": 3}, "else": {"minLength": 3}}, "x", [((), "minLength")]),
    "then beside a type": ({"if": INT, "then": {"minimum": 3}, "maximum": 0}, 1, [((), "maximum"), ((), "minimum")]),
    "no then": ({"if": INT, "else": False, "minimum": 3}, 1, [((), "minimum")]),
    "no else": ({"if": INT, "then": False, "minLength": 3}, "x", [((), "minLength")]),
    "dependent schemas": (
        {"dependentSchemas": {"a": {"required": ["z"]}, "b": {"required": ["z"]}}}, {"a": 1}, [((), "required")],
    ),
    "dependent names": ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, [((), "dependentRequired")]),
    "unique items": ({"uniqueItems": True}, [1, 1], [((), "uniqueItems")]),
    "words that say nothing": ({"title": "t", "type": "string"}, 1, [((), "type")]),
    "no fault": ({"properties": {"a": INT}, "items": INT}, {"a": 1}, []),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_told_place_by_place(name: str) -> None:
    schema, value, told = FAULTS[name]
    listed = list(faults(Validator(schema), value, Budget()))
    assert [(fault.place, fault.word) for fault in listed] == told
    for fault in listed if "propertyNames" not in schema else ():
        node = value
        for step in fault.place:
            node = node[step]
        assert fault.value == node


def test_missing_names_are_told_together() -> None:
    (fault,) = faults(Validator({"required": ["a", "b", "c"], "properties": {"z": {}}}), {"b": 1}, Budget())
    assert (fault.word, fault.expected, fault.names, fault.known_names) == (
        "required",
        ["a", "b", "c"],
        ("a", "c"),
        (),
    )


@pytest.mark.parametrize("word", ["additionalProperties", "unevaluatedProperties"])
def test_unknown_names_of_a_schema_without_properties_are_told(word: str) -> None:
    value = {"b": 1}
    (fault,) = faults(Validator({word: False}), value, Budget())
    assert (fault.names, fault.known_names, fault.value) == (("b",), (), value)


@pytest.mark.parametrize("word", ["additionalProperties", "unevaluatedProperties"])
def test_unknown_names_are_told_with_the_known_ones(word: str) -> None:
    schema = {"properties": {"z": {}, "y": {}}, "patternProperties": {"^a": {}}, word: False}
    (fault,) = faults(Validator(schema), {"b": 1, "a": 2, "z": 3, "c": 4}, Budget())
    assert (fault.word, fault.expected, fault.names, fault.known_names) == (
        word,
        False,
        ("b", "c"),
        ("z", "y"),
    )
    assert fault.place == ()


def test_expectation_is_that_of_the_keyword() -> None:
    (fault,) = faults(Validator({"properties": {"a": False}}), {"a": 3}, Budget())
    assert (fault.place, fault.word, fault.expected, fault.value) == (("a",), None, False, 3)
    (fault,) = faults(Validator({"properties": {"a": {"enum": [1, 2]}}}), {"a": 3}, Budget())
    assert (fault.place, fault.word, fault.expected, fault.value) == (("a",), "enum", [1, 2], 3)


@pytest.mark.parametrize(
    ("schema", "value", "steps"),
    [
        ({"type": "integer"}, "x", 1),
        ({"type": "integer", "minimum": 3}, "x", 2 + 2),
        ({"required": ["a", "b"]}, {"c": 1}, 2 + 1 + 2),
        ({"items": {"type": "integer"}}, ["x", "y"], 2 + 2 + 2 * 1),
        ({"type": "string", "items": {}}, [1, 2, 3], 1 + 3),
        (
            {"patternProperties": {"a": {}, "b": {}}, "type": "array"},
            {"a": 1},
            2 + 1 + (3 + 2 * 4),
        ),
    ],
)
def test_telling_of_faults_costs_steps(
    schema: Any, value: Any, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.thread_time", lambda: 1.0)
    budget = Budget(1_000)
    list(faults(Validator(schema), value, budget))
    assert budget.left == 1_000 - steps
    with pytest.raises(CheckTooCostly):
        list(faults(Validator(schema), value, Budget(steps - 1)))
