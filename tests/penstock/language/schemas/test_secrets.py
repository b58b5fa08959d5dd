"""Masking: each keyword that can lead to a mark, and what stays as it is."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from penstock.language.schemas import secrets
from penstock.language.schemas.schema import Schema

SECRET = {"secret": True}
NAMED = {"properties": {"a": SECRET}}
A, MASKED_A = {"a": "x", "b": 1}, {"a": "***", "b": 1}
MASKED: dict[str, tuple[Any, Any, Any]] = {
    "a mark at the top": (SECRET, {"a": 1}, "***"),
    "the word of OpenAPI": ({"properties": {"a": {"writeOnly": True}}}, A, MASKED_A),
    "a mark that is false": ({"properties": {"a": {"secret": False, "writeOnly": False}}}, A, A),
    "a mark that is not a boolean": ({"properties": {"a": {"secret": 1}}}, A, A),
    "a schema that is a boolean": ({"properties": {"a": True, "b": SECRET}}, A, {"a": "x", "b": "***"}),
    "a mark on null": (NAMED, {"a": None}, {"a": "***"}),
    "a property": (NAMED, A, MASKED_A),
    "a property in a list": ({"items": NAMED}, [A, A], [MASKED_A, MASKED_A]),
    "a property in a tuple": ({"items": NAMED}, (A,), [MASKED_A]),
    "allOf": ({"allOf": [{}, NAMED]}, A, MASKED_A),
    "anyOf": ({"anyOf": [{"type": "null"}, NAMED]}, A, MASKED_A),
    "oneOf": ({"oneOf": [{"type": "null"}, NAMED]}, A, MASKED_A),
    "if": ({"if": NAMED}, A, MASKED_A),
    "then": ({"then": NAMED}, A, MASKED_A),
    "else": ({"else": NAMED}, A, MASKED_A),
    "dependentSchemas": ({"dependentSchemas": {"z": NAMED}}, A, MASKED_A),
    "not, which never applies": ({"not": NAMED}, A, A),
    "a reference": ({"$ref": "#/$defs/d", "$defs": {"d": NAMED}}, A, MASKED_A),
    "a reference to the whole, which is refused where it is declared": ({"$ref": "#", **NAMED}, A, MASKED_A),
    "a reference that leads nowhere": ({"$ref": "#/$defs/e", **NAMED}, A, MASKED_A),
    "a reference in a circle": (
        {"properties": {"a": {"$ref": "#"}, "b": SECRET}}, {"a": {"b": 1}, "b": 2}, {"a": {"b": "***"}, "b": "***"},
    ),
    "branches within branches": ({"allOf": [{"anyOf": [{"oneOf": [NAMED]}]}]}, A, MASKED_A),
    "the parts after a circle": (
        {"allOf": [{"$ref": "#/$defs/d"}, {"$ref": "#/$defs/d"}, NAMED], "$defs": {"d": {"title": "d"}}}, A, MASKED_A,
    ),
    "a part before one that was met": (
        {"allOf": [NAMED, {"$ref": "#/$defs/d"}, {"$ref": "#/$defs/d"}], "$defs": {"d": {"title": "d"}}}, A, MASKED_A,
    ),
    "the first item": ({"prefixItems": [SECRET, {}]}, [1, 2, 3], ["***", 2, 3]),
    "the second item": ({"prefixItems": [{}, SECRET]}, [1, 2, 3], [1, "***", 3]),
    "items": ({"items": SECRET}, [1], ["***"]),
    "contains": ({"contains": SECRET}, [1], ["***"]),
    "unevaluatedItems": ({"unevaluatedItems": SECRET}, [1], ["***"]),
    "a pattern": ({"patternProperties": {"^a": SECRET}}, A, MASKED_A),
    "a pattern beside a name": ({"properties": {"a": {}}, "patternProperties": {"^a": SECRET}}, A, MASKED_A),
    "other names": ({"additionalProperties": SECRET}, A, {"a": "***", "b": "***"}),
    "other names than those that are named": (
        {"properties": {"b": {}}, "additionalProperties": SECRET}, A, MASKED_A,
    ),
    "other names than those of a pattern": (
        {"patternProperties": {"b": {}}, "additionalProperties": SECRET}, A, MASKED_A,
    ),
    "unevaluated names": ({"unevaluatedProperties": SECRET}, A, {"a": "***", "b": "***"}),
    "names of an item": ({"properties": {"a": {"items": NAMED}}}, {"a": [A]}, {"a": [MASKED_A]}),
    "an empty schema": ({}, A, A),
    "a number of an unmarked name": ({"properties": {"b": {"type": "integer"}}}, A, A),
}  # fmt: skip


@pytest.mark.parametrize("name", MASKED)
def test_marked_parts_of_a_value_are_masked(name: str) -> None:
    schema, value, masked = MASKED[name]
    assert secrets.masked(value, schema) == masked
    assert Schema(schema).mask(value) == masked


TEXTS: dict[str, tuple[Any, Any, list[str]]] = {
    "a text and a number": ({"items": SECRET}, ["x", 7, 1.5], ["x", "7", "1.5"]),
    "no boolean and no null": (SECRET, [True, False, None, "x"], ["x"]),
    "all that is in a marked object": (SECRET, {"a": {"b": ["x", {"c": 2}]}, "d": ("y",)}, ["x", "2", "y"]),
    "marked properties alone": (NAMED, {"a": "x", "b": "y"}, ["x"]),
    "marked properties in a tuple": ({"items": NAMED}, ({"a": "x"}, {"a": "z"}), ["x", "z"]),
    "the second item": ({"prefixItems": [{}, SECRET]}, ["x", "y"], ["y"]),
    "a reference": ({"items": {"$ref": "#/$defs/d"}, "$defs": {"d": NAMED}}, [{"a": "x", "b": "y"}], ["x"]),
    "a reference of a tuple and an object": (
        {"properties": {"l": {"prefixItems": [{"$ref": "#/$defs/d"}]}}, "$defs": {"d": NAMED}},
        {"l": ({"a": "x"},)},
        ["x"],
    ),
    "nothing": ({}, {"a": "x"}, []),
    "a value without parts": ({"type": "string"}, "x", []),
}


@pytest.mark.parametrize("name", TEXTS)
def test_secret_texts_are_those_of_marked_parts(name: str) -> None:
    schema, value, texts = TEXTS[name]
    assert secrets.secret_texts(value, schema) == texts
    assert Schema(schema).secrets_of(value) == texts


@pytest.mark.parametrize(
    ("place", "is_secret"),
    [
        ((), False),
        (("a",), True),
        (("a", "deeper", 0), True),
        (("b",), False),
        (("list",), False),
        (("list", 0), False),
        (("list", 1), True),
        (("list", 2, "a"), True),
        (("list", 2, "b"), False),
        (("other", "a"), True),
        (("x1",), True),
        (("x",), False),
    ],
)
def test_place_is_secret_if_it_or_its_surroundings_are(place: tuple[str | int, ...], is_secret: bool) -> None:
    schema = {
        "properties": {
            "a": SECRET,
            "list": {"prefixItems": [{}, SECRET], "items": NAMED},
            "other": {"$ref": "#/$defs/d"},
        },
        "patternProperties": {"[0-9]": SECRET},
        "$defs": {"d": NAMED},
    }
    assert secrets.is_secret_at(place, schema) is is_secret
    assert secrets.is_secret_at(place, SECRET)


def test_schema_has_secrets_however_deep_a_mark_is() -> None:
    assert secrets.has_secrets({"items": {"anyOf": [{"type": "null"}, NAMED]}})
    assert not secrets.has_secrets(
        {"properties": {"secret": {"type": "string"}}, "default": {"secret": True}}
    )


def test_masked_schema_shows_no_values_of_marked_parts() -> None:
    part = {"default": "x", "const": "x", "enum": ["x", 1], "examples": [["x"]], "title": "t", "pattern": "x"}
    shown = {**part, "default": "***", "const": "***", "enum": ["***", "***"], "examples": ["***"]}
    schema = {
        "properties": {
            "open": part,
            "marked": {**part, "secret": True, "items": part, "properties": {"deeper": part}},
            "object": {"properties": {"a": SECRET}, "default": {"a": 1, "b": 2}, "examples": [{"a": 1}]},
        }
    }
    schema = orjson.loads(orjson.dumps(schema))  # no two places share an object
    before = repr(schema)
    masked = secrets.masked_schema(schema)
    assert masked == {
        "properties": {
            "open": part,
            "marked": {**shown, "secret": True, "items": shown, "properties": {"deeper": shown}},
            "object": {
                "properties": {"a": SECRET},
                "default": {"a": "***", "b": 2},
                "examples": [{"a": "***"}],
            },
        }
    }
    assert repr(schema) == before


def test_masked_schema_leaves_examples_that_are_not_a_list() -> None:
    assert secrets.masked_schema({"secret": True, "examples": "x", "enum": ("x",)}) == {
        "secret": True, "examples": "x", "enum": ("x",),
    }  # fmt: skip


def test_value_in_a_circle_of_python_is_secret_as_a_whole() -> None:
    circle: dict[str, Any] = {}
    circle["a"] = circle
    assert secrets.masked(circle, {"properties": {"a": {"$ref": "#"}}}) == "***"


def test_costly_value_is_secret_as_a_whole() -> None:
    schema = {"anyOf": [{"items": {"properties": {f"k{n}": SECRET}}} for n in range(300)]}
    value = [{"x": n} for n in range(1_000)]
    assert secrets.masked(value, schema) == "***"
    assert secrets.secret_texts(value, schema) == [str(n) for n in range(1_000)]


def test_masked_schema_masks_a_default_by_its_own_part_alone() -> None:
    schema = {"properties": {"a": {"secret": True}}, "items": {"default": {"a": 1}}}
    assert secrets.masked_schema(schema) == schema


def test_masked_schema_follows_references_of_marks() -> None:
    part = {"$ref": "#/$defs/d", "default": {"a": 1}, "enum": [{"a": 1, "b": 2}]}
    masked = secrets.masked_schema({"properties": {"a": part}, "$defs": {"d": NAMED}})
    assert masked["properties"]["a"] == {
        "$ref": "#/$defs/d", "default": {"a": "***"}, "enum": [{"a": "***", "b": 2}],
    }  # fmt: skip
