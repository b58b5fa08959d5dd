"""The check of a schema: what is refused, with its place, and the bounds to the last byte, part and character."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.bounds import PATTERNS_CAP, SCHEMA_CAP, SCHEMA_PARTS_CAP
from penstock.language.schemas.metaschema import DIALECT, WORDS
from penstock.language.schemas.schema_checks import check_schema
from penstock.language.terms.options import Wrong

REFUSED: dict[str, tuple[Any, str]] = {
    "a list": ([], "must be an object"),
    "a boolean": (True, "must be an object"),
    "a number": ({"minimum": "x"}, "is not a JSON Schema at minimum: expected number, got string"),
    "a type": ({"type": "text"}, "is not a JSON Schema at type: fits none, or too many, of the 2 forms"),
    "a type twice": ({"type": ["string", "string"]}, "at type"),
    "no types": ({"type": []}, "at type"),
    "a schema that is a number": ({"items": 3}, "is not a JSON Schema at items: expected object or boolean"),
    "a deep one": ({"properties": {"a": {"allOf": [{}, {"not": {"maxLength": -1}}]}}}, "at properties.a.allOf[1].not.maxLength"),
    "an empty list of branches": ({"allOf": []}, "at allOf"),
    "another dialect": ({"$schema": "http://json-schema.org/draft-07/schema#"}, "names the dialect 'http://json-schema.org/draft-07"),
    "a reference elsewhere": ({"$ref": "other.json"}, "refers to 'other.json' at its top"),
    "a reference to nothing": ({"items": {"$ref": "#/$defs/a"}}, "refers to '#/$defs/a' at items"),
    "a reference to a value": ({"$ref": "#/default", "default": {}}, "refers to '#/default' at its top"),
    "a reference to a list": ({"$ref": "#/allOf", "allOf": [{}]}, "refers to '#/allOf'"),
    "a mark that is not a boolean": (
        {"items": {"secret": "yes"}}, "has a value of secret that is neither true nor false at items"),
    "a mark that is a number": ({"secret": 1}, "has a value of secret that is neither true nor false at its top"),
    "another mark that is a text": ({"writeOnly": "yes"}, "expected boolean, got string"),
    "a pattern": ({"items": {"pattern": "(x"}}, "has a pattern that is not a regular expression: '(x'"),
    "a pattern of names": ({"patternProperties": {"(x": {}}}, "has a pattern that is not a regular expression: '(x'"),
    "a long pattern that is none": ({"pattern": "(" + "x" * 200}, f"is not a regular expression: '({'x' * 98}…'"),
    "a NUL": ({"title": "\0"}, "NUL"),
    "a value of Python": ({"default": {1, 2}}, "not JSON"),
    **{f"the word {word}": ({"not": {word: {} if word == "$vocabulary" else "x"}}, f"uses {word} at not")
       for word in ("$id", "$dynamicRef", "$dynamicAnchor", "$anchor", "$vocabulary")},
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_unsound_schema_is_refused_with_its_place(name: str) -> None:
    schema, message = REFUSED[name]
    with pytest.raises(Wrong) as refused:
        check_schema(schema)
    assert message in str(refused.value)


def test_hint_of_a_type_lists_the_types() -> None:
    with pytest.raises(Wrong) as refused:
        check_schema({"items": {"type": "text"}})
    assert refused.value.hint == "Types are object, array, string, integer, number, boolean and null."
    with pytest.raises(Wrong) as refused:
        check_schema({"minimum": "x"})
    assert "draft 2020-12" in str(refused.value.hint)


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"$schema": DIALECT},
        {"secret": True, "writeOnly": False},
        {"$ref": "#/$defs/a", "$defs": {"a": True}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"b": {"$ref": "#"}}}}},
        {"properties": {"a": {"$ref": "#"}}, "items": {"$ref": "#"}},
        {"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}], "$defs": {"a": {}}},
        {"default": {"$ref": "nowhere", "$id": "x", "pattern": "("}},
        {"properties": {"$id": {"type": "string"}, "pattern": {"type": "string"}}},
        {"x-mine": {"anything": 1}},
    ],
)
def test_sound_schema_is_taken(schema: Any) -> None:
    check_schema(schema)


_CIRCLE = {"$ref": "#/$defs/a"}


@pytest.mark.parametrize(
    "inner",
    [
        _CIRCLE,
        {"allOf": [{}, _CIRCLE]},
        {"anyOf": [{}, _CIRCLE]},
        {"oneOf": [{}, _CIRCLE]},
        {"not": _CIRCLE},
        {"if": _CIRCLE},
        {"then": _CIRCLE},
        {"else": _CIRCLE},
        {"dependentSchemas": {"x": {}, "y": _CIRCLE}},
        {"allOf": [{"$ref": "#/$defs/b"}]},
        {"allOf": [{"$ref": "#/$defs/c"}, {"$ref": "#/$defs/c"}, {"$ref": "#/$defs/b"}]},
    ],
)
def test_part_that_leads_back_to_itself_is_refused(inner: Any) -> None:
    definitions = {"a": inner, "b": {"anyOf": [_CIRCLE]}, "c": {"type": "string"}}
    with pytest.raises(Wrong, match="refers to itself without end at"):
        check_schema({"$defs": definitions})
    with pytest.raises(Wrong, match="refers to itself without end at"):
        check_schema({"items": {"$ref": "#/$defs/c"}, "not": {"$ref": "#/$defs/a"}, "$defs": definitions})


def test_part_to_which_many_ways_lead_is_searched_once() -> None:
    """Each part leads to the next one twice, so there are 2 ** 40 ways to the last one."""
    parts = {f"p{n}": {"allOf": [{"$ref": f"#/$defs/p{n + 1}"}] * 2} for n in range(40)}
    check_schema({"$defs": {**parts, "p40": {}}})


@pytest.mark.parametrize(
    ("schema", "place"),
    [({"$ref": "#"}, "its top"), ({"items": {"not": {"$ref": "#/items"}}}, "items")],
)
def test_place_of_a_circle_is_told(schema: Any, place: str) -> None:
    with pytest.raises(Wrong, match=f"without end at {place}"):
        check_schema(schema)


def test_schema_takes_its_bound_of_bytes_and_not_one_more() -> None:
    around = len('{"title":""}')
    check_schema({"title": "x" * (SCHEMA_CAP - around)})
    with pytest.raises(Wrong, match="the schema has 131,073 bytes"):
        check_schema({"title": "x" * (SCHEMA_CAP - around + 1)})


def test_schema_takes_its_bound_of_parts_and_tells_how_many() -> None:
    check_schema({"anyOf": [{}] * (SCHEMA_PARTS_CAP - 1)})
    with pytest.raises(Wrong, match="has 10,001 schemas inside; at most 10,000 are taken"):
        check_schema({"anyOf": [{}] * SCHEMA_PARTS_CAP})


def test_patterns_of_a_schema_take_their_bound_and_no_more() -> None:
    full = "x" * (PATTERNS_CAP // 2 - 64)
    check_schema({"pattern": full, "patternProperties": {full[:-1] + "y": {}}})
    check_schema(
        {"pattern": full, "items": {"pattern": full, "not": {"pattern": full}}}
    )  # one pattern, three times
    with pytest.raises(Wrong, match="has patterns with more than 16,384 characters"):
        check_schema({"pattern": full, "patternProperties": {f"{full}y": {}}})
    with pytest.raises(Wrong, match="has patterns with more than"):
        check_schema({"items": {"pattern": full}, "not": {"pattern": f"{full}y"}})


WRONG: dict[str, Any] = {
    **dict.fromkeys(("$schema", "$ref", "$comment", "title", "description", "pattern", "format"), 1),
    **dict.fromkeys(("contentEncoding", "contentMediaType"), 1),
    **dict.fromkeys(("deprecated", "readOnly", "writeOnly", "uniqueItems"), 0),
    **dict.fromkeys(("examples", "enum", "required"), "a"),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"), "1"),
    **dict.fromkeys((
        "maxLength", "minLength", "maxItems", "minItems", "maxContains", "minContains", "maxProperties", "minProperties",
    ), 1.5),
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), "a"),
    **dict.fromkeys((
        "not", "if", "then", "else", "items", "contains", "additionalProperties", "propertyNames", "unevaluatedItems",
        "unevaluatedProperties", "contentSchema",
    ), 3),
    **dict.fromkeys((
        "$defs", "definitions", "dependentSchemas", "properties", "patternProperties", "dependentRequired",
    ), 3),
    "multipleOf": 0, "type": "any",
}  # fmt: skip
"""A wrong value of each keyword."""
UNCHECKED = {"default", "const", "$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$vocabulary"}
"""Keywords that take any value, and those that are refused whatever their value is."""


def test_every_keyword_has_a_wrong_value() -> None:
    assert WRONG.keys() | UNCHECKED == WORDS.keys()


@pytest.mark.parametrize("word", WRONG)
def test_wrong_value_of_a_keyword_is_refused(word: str) -> None:
    with pytest.raises(Wrong, match="is not a JSON Schema at"):
        check_schema({word: WRONG[word]})
    for inside in ({"items": {word: WRONG[word]}}, {"$defs": {"a": {word: WRONG[word]}}}):
        with pytest.raises(Wrong, match="is not a JSON Schema at"):
            check_schema(inside)
