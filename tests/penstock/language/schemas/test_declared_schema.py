"""Schemas as people write them: which form a declaration is read as, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from penstock.language.schemas.declared_schema import parameters_schema, payload_schema
from penstock.language.terms.options import Wrong

TEXT = {"type": "string"}
PAYLOADS: dict[str, tuple[Any, Any]] = {
    "nothing": (None, {}),
    "no names": ({}, {"type": "object"}),
    "a type of one word": ({"type": "integer"}, {"type": "integer"}),
    "a list of types": ({"type": ["integer", "null"]}, {"type": ["integer", "null"]}),
    "properties": ({"properties": {"a": TEXT}}, {"properties": {"a": TEXT}}),
    "properties that are a name": (
        {"properties": "string"}, {"type": "object", "properties": {"properties": TEXT}},
    ),
    "properties that are empty": (
        {"properties": {}}, {"type": "object", "properties": {"properties": {}}},
    ),
    "properties with an entry of one word": (
        {"properties": {"type": "string"}}, {"type": "object", "properties": {"properties": TEXT}},
    ),
    "a reference": ({"$ref": "#/$defs/a", "$defs": {"a": TEXT}}, {"$ref": "#/$defs/a", "$defs": {"a": TEXT}}),
    "a comment": ({"$comment": "c"}, {"$comment": "c"}),
    "allOf": ({"allOf": [TEXT]}, {"allOf": [TEXT]}),
    "anyOf": ({"anyOf": [{"minLength": 1}]}, {"anyOf": [{"minLength": 1}]}),
    "oneOf": ({"oneOf": [TEXT]}, {"oneOf": [TEXT]}),
    "enum": ({"enum": [1]}, {"enum": [1]}),
    "required": ({"required": ["a"]}, {"required": ["a"]}),
    "names like words": (
        {"type": {"type": "string"}, "enum": "string", "allOf": {"type": "string", "required": True}},
        {"type": "object", "properties": {"type": TEXT, "enum": TEXT, "allOf": TEXT}, "required": ["allOf"]},
    ),
    "short and long": (
        {"a": "string", "b": {"type": "string", "required": True}, "c": {"type": "string", "required": False}},
        {"type": "object", "properties": {"a": TEXT, "b": TEXT, "c": TEXT}, "required": ["b"]},
    ),
    "an entry that is an object with required names": (
        {"a": {"type": "object", "required": ["x"], "properties": {"x": TEXT}}},
        {"type": "object", "properties": {"a": {"type": "object", "required": ["x"], "properties": {"x": TEXT}}}},
    ),
    "an entry without a type": ({"a": {"secret": True}}, {"type": "object", "properties": {"a": {"secret": True}}}),
    "an entry with several types": (
        {"a": {"type": ["string", "null"]}}, {"type": "object", "properties": {"a": {"type": ["string", "null"]}}},
    ),
    "a word of one's own": ({"a": {"x-order": 1}}, {"type": "object", "properties": {"a": {"x-order": 1}}}),
    "what pydantic says of unions": (
        {"a": {"oneOf": [TEXT], "discriminator": {"propertyName": "k"}}},
        {"type": "object", "properties": {"a": {"oneOf": [TEXT], "discriminator": {"propertyName": "k"}}}},
    ),
    "a type of Python": (list[int], {"type": "array", "items": {"type": "integer"}}),
}  # fmt: skip


@pytest.mark.parametrize("name", PAYLOADS)
def test_payload_is_read_as_the_form_that_it_is_written_in(name: str) -> None:
    declared, schema = PAYLOADS[name]
    before = repr(declared)
    assert payload_schema(declared) == schema
    assert repr(declared) == before


OBJECT = {"type": "object"}
PARAMETERS: dict[str, tuple[Any, Any]] = {
    "nothing": (None, {**OBJECT, "additionalProperties": False}),
    "a name": ({"a": "string"}, {**OBJECT, "properties": {"a": TEXT}, "additionalProperties": False}),
    "what is open": ({"type": "object", "additionalProperties": {}}, OBJECT),
    "what says its others": ({"type": "object", "additionalProperties": TEXT}, {**OBJECT, "additionalProperties": TEXT}),
    "what says its unevaluated ones": (
        {"type": "object", "unevaluatedProperties": TEXT}, {**OBJECT, "unevaluatedProperties": TEXT},
    ),
    "no type": ({"properties": {"a": TEXT}}, {**OBJECT, "properties": {"a": TEXT}, "additionalProperties": False}),
    **{
        word: ({"type": "object", word: value}, {**OBJECT, word: value, "unevaluatedProperties": False})
        for word, value in {
            "allOf": [{}], "anyOf": [{}], "oneOf": [{}], "if": {"minProperties": 1},
            "dependentSchemas": {"a": {"minProperties": 1}},
        }.items()
    },
    "a reference": (
        {"$ref": "#/$defs/a", "$defs": {"a": {}}},
        {**OBJECT, "$ref": "#/$defs/a", "$defs": {"a": {}}, "unevaluatedProperties": False},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_are_closed_unless_they_say_otherwise(name: str) -> None:
    declared, schema = PARAMETERS[name]
    assert parameters_schema(declared) == schema


def test_parameters_of_a_dataclass_are_its_fields() -> None:
    @dataclass
    class Order:
        customer: str
        count: int = 1

    schema = parameters_schema(Order)
    assert schema["properties"] == {"customer": TEXT, "count": {"type": "integer", "default": 1}}
    assert (schema["required"], schema["additionalProperties"]) == (["customer"], False)


@pytest.mark.parametrize("kind", ["array", "string", ["object", "null"]])
def test_parameters_of_another_type_are_refused(kind: Any) -> None:
    with pytest.raises(Wrong, match="other than an object"):
        parameters_schema({"type": kind})


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ("string", "is neither a JSON Schema nor a list of names"),
        (True, "is neither a JSON Schema"),
        (3, "is neither a JSON Schema"),
        (1.5, "is neither a JSON Schema"),
        (["a"], "is neither a JSON Schema"),
        ({1: "string"}, "has a name that is not text"),
        ({True: "string", "a": "string"}, "has a name that is not text"),
        ({"a": "text"}, "a: unknown type 'text'"),
        ({"a": {"type": "text"}}, "a: unknown type 'text'"),
        ({"b": 3}, "b: is neither a type nor a mapping"),
        ({"b": None}, "b: is neither a type nor a mapping"),
        ({"a": {"maximun": 1}}, "has a keyword that JSON Schema does not know at properties.a: 'maximun'"),
        ({"type": "object", "maximun": 1}, "has a keyword that JSON Schema does not know: 'maximun'"),
        ({"a": {"X-order": 1}}, "'X-order'"),
        ({"a": {"type": "integer", "minimum": "x"}}, "is not a JSON Schema at properties.a.minimum"),
    ],
)
def test_wrong_declaration_is_refused_with_its_place(declared: Any, message: str) -> None:
    for read in (payload_schema, parameters_schema):
        with pytest.raises(Wrong) as refused:
            read(declared)
        assert message in str(refused.value)
        assert refused.value.hint
