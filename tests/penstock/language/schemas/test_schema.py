from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import orjson
import pytest

from penstock.errors import InvalidInput
from penstock.language.schemas import Schema, check_schema, mask, parameters_schema, payload_schema
from penstock.language.terms.options import Wrong

ORDER = parameters_schema(
    {
        "customer": {"type": "string", "required": True},
        "amount": {"type": "integer", "minimum": 1},
        "card": {"type": "object", "properties": {"number": {"type": "string", "secret": True}}},
        "kind": {"enum": ["a", "b"]},
        "at": {"type": "string", "format": "date-time"},
    }
)


def test_a_fitting_value_becomes_canonical_json() -> None:
    assert Schema(ORDER).check({"customer": "c", "amount": 3}) == b'{"amount":3,"customer":"c"}'


def test_datetimes_and_tuples_count_as_the_json_they_become() -> None:
    at = datetime(2030, 1, 2, tzinfo=UTC)
    assert orjson.loads(Schema(ORDER).check({"customer": "c", "at": at}))["at"].startswith("2030-01-02")
    assert Schema({"type": "array"}).check((1, 2)) == b"[1,2]"


@pytest.mark.parametrize(
    ("value", "message", "hint"),
    [
        ({"customer": 3}, "parameters.customer: expected string, got integer", None),
        ({"customer": None}, "parameters.customer: expected string, got null", None),
        ({}, "parameters: customer is missing", None),
        ({"customer": "c", "amonut": 1}, "parameters: unknown 'amonut'", "amount"),
        ({"customer": "c", "amount": 0}, "parameters.amount: does not satisfy minimum: 1", None),
        ({"customer": "c", "kind": "z"}, 'parameters.kind: expected one of ["a","b"]', None),
        ({"customer": "c", "at": "yesterday"}, "parameters.at: does not satisfy format", None),
        ({"customer": "c", "card": {"number": 4111}}, "parameters.card.number: expected string", None),
        ([], "parameters: expected object, got array", None),
    ],
)
def test_an_unfit_value_is_refused_with_path_and_expectation(
    value: Any, message: str, hint: str | None
) -> None:
    with pytest.raises(InvalidInput) as raised:
        Schema(ORDER).check(value)
    assert message in raised.value.message
    assert hint is None or hint in str(raised.value.hint)
    with pytest.raises(InvalidInput):
        Schema(ORDER).validate(value)


def test_an_error_never_shows_a_value_as_it_may_be_secret() -> None:
    schema = Schema(
        {"properties": {"pin": {"type": "string", "maxLength": 2, "pattern": "^z", "secret": True}}}
    )
    for value in ({"pin": 987654}, {"pin": "hunter2"}):
        with pytest.raises(InvalidInput) as raised:
            schema.check(value)
        assert "hunter2" not in str(raised.value)
        assert "987654" not in str(raised.value)


def test_the_whole_value_is_named_when_it_is_a_payload() -> None:
    with pytest.raises(InvalidInput, match=r"payload\.customer"):
        Schema(ORDER).check({"customer": 3}, what="payload")


def test_without_a_schema_anything_that_is_json_is_taken() -> None:
    empty: dict[str, Any] | None
    for empty in (None, {}):
        assert Schema(empty).check([1, {"x": None}]) == b'[1,{"x":null}]'
        with pytest.raises(InvalidInput, match="bytes"):
            Schema(empty).check("x" * 100, cap=10)


def test_unique_items_are_checked() -> None:
    schema = Schema({"type": "array", "uniqueItems": True})
    assert schema.check([1, 2]) == b"[1,2]"
    with pytest.raises(InvalidInput, match="uniqueItems"):
        schema.check([1, 1])


def test_a_schema_that_refers_elsewhere_is_never_fetched() -> None:
    with pytest.raises(Wrong, match=r"refers to 'http://127\.0\.0\.1:9/x'") as raised:
        check_schema({"properties": {"a": {"$ref": "http://127.0.0.1:9/x"}}})
    assert "$defs" in str(raised.value.hint)
    stored_nevertheless = Schema({"$ref": "http://127.0.0.1:9/x"})
    with pytest.raises(Exception, match="refers to"):
        stored_nevertheless.check({})


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ([], "must be an object"),
        ({"type": "text"}, "at type"),
        ({"properties": {"a": {"minimum": "x"}}}, "at properties.a.minimum"),
        ({"$ref": "#"}, "refers to itself without end"),
        (
            {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
            "without end",
        ),
        ({"$ref": "#/$defs/missing"}, "not in it"),
        ({"$id": "http://x", "type": "object"}, "uses $id"),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, "dialect"),
        ({"pattern": "("}, "pattern"),
        ({"patternProperties": {"(": {}}}, "pattern that is none"),
        ({"properties": {"a": {"secret": "yes"}}}, "neither true nor false"),
        ({"description": "x" * 200_000}, "bytes"),
        ({"description": "nul \0"}, "NUL"),
        ({"allOf": [{"$ref": "#"}]}, "without end"),
        ({"not": {"$ref": "#/$defs/a"}, "$defs": {"a": {"anyOf": [{"$ref": "#"}]}}}, "without end"),
        ({"$ref": "#/default", "default": {"type": 5}}, "not in it"),
        ({"anyOf": [{"not": {}}] * 5_001}, "schemas inside"),
        ({"patternProperties": {f"^{n}": {} for n in range(300)}}, "patterns of more than"),
        ({"required": ["a", "a"]}, "at required"),
        ({"required": [1]}, "at required[0]"),
    ],
)
def test_a_schema_that_is_not_sound_is_refused_with_its_place(schema: Any, message: str) -> None:
    with pytest.raises(Wrong) as raised:
        check_schema(schema)
    assert message in str(raised.value)


def test_schema_that_refers_on_too_often_is_refused() -> None:
    chain = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(1_500)} | {"d1500": {}}
    with pytest.raises(Wrong, match="too often"):
        check_schema({"$ref": "#/$defs/d0", "$defs": chain})


@pytest.mark.parametrize("value", [{"id": uuid4()}, {"id": datetime(2030, 1, 2, tzinfo=UTC)}])
def test_value_is_checked_as_the_json_it_becomes(value: Any) -> None:
    with pytest.raises(InvalidInput, match="maxLength"):
        Schema({"properties": {"id": {"maxLength": 5}}}).check(value)


def test_a_value_too_deep_for_a_recursive_schema_is_refused_not_crashed_on() -> None:
    schema = Schema({"properties": {"in": {"$ref": "#"}}, "uniqueItems": True})
    value: dict[str, Any] = {}
    for _ in range(5000):
        value = {"in": value}
    with pytest.raises(InvalidInput, match="deep"):
        schema.validate(value)


CARD = {
    "properties": {
        "pin": {"type": "string", "secret": True},
        "password": {"type": "string", "writeOnly": True},
        "cards": {"type": "array", "items": {"$ref": "#/$defs/card"}},
        "maybe": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/card"}]},
    },
    "patternProperties": {"^x_": {"secret": True}},
    "additionalProperties": {"properties": {"token": {"secret": True}}},
    "$defs": {"card": {"properties": {"number": {"secret": True}, "next": {"$ref": "#/$defs/card"}}}},
}


def test_secrets_are_masked_wherever_they_are() -> None:
    value = {
        "pin": "1",
        "password": "2",
        "cards": [{"number": "3", "name": "n", "next": {"number": "4"}}],
        "maybe": {"number": {"deep": "5"}},
        "x_key": ["6"],
        "other": {"token": "7", "shown": 8},
        "plain": 9,
    }
    assert mask(value, CARD) == {
        "pin": "***",
        "password": "***",
        "cards": [{"number": "***", "name": "n", "next": {"number": "***"}}],
        "maybe": {"number": "***"},
        "x_key": "***",
        "other": {"token": "***", "shown": 8},
        "plain": 9,
    }
    assert value["pin"] == "1"


def test_a_value_without_secrets_is_not_even_copied() -> None:
    value = {"customer": "c"}
    schema = Schema({"properties": {"customer": {"type": "string"}}})
    assert schema.mask(value) is value
    assert mask(value, None) is value


def test_the_short_form_says_the_same_as_the_long_one() -> None:
    short = {
        "name": "string",
        "size": {"type": "integer", "required": True},
        "tag": {"type": "string", "default": "x"},
    }
    assert parameters_schema(short) == {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "size": {"type": "integer"},
            "tag": {"type": "string", "default": "x"},
        },
        "required": ["size"],
        "additionalProperties": False,
    }
    assert payload_schema(short).get("additionalProperties") is None


def test_parameters_may_have_the_names_of_schema_words() -> None:
    made = parameters_schema({"type": {"type": "string"}, "required": {"type": "boolean", "required": True}})
    assert set(made["properties"]) == {"type", "required"}
    assert made["required"] == ["required"]


def test_composed_parameters_take_only_properties_of_branches() -> None:
    made = Schema(parameters_schema({"type": "object", "allOf": [{"properties": {"a": {"type": "string"}}}]}))
    assert made.check({"a": "x"}) == b'{"a":"x"}'
    with pytest.raises(InvalidInput):
        made.check({"b": "x"})


@pytest.mark.parametrize(
    ("given", "message", "hint"),
    [
        ({"a": {"type": "strng"}}, "unknown type 'strng'", "string"),
        ({"a": {"type": "string", "requierd": True}}, "'requierd'", "required"),
        ({"type": "object", "properties": {"a": {"nullable": True}}}, "'nullable'", "x-"),
        ({"a": 3}, "a: is neither", "{type: string}"),
        ({1: "string"}, "not text", None),
        ("string", "neither a JSON Schema", None),
        ({"type": "array"}, "other than an object", None),
        (object, "has no JSON Schema", "dataclasses"),
    ],
)
def test_a_slip_in_written_parameters_is_refused(given: Any, message: str, hint: str | None) -> None:
    class Unknown:
        pass

    with pytest.raises(Wrong) as raised:
        parameters_schema(Unknown if given is object else given)
    assert message in str(raised.value)
    assert hint is None or hint in str(raised.value.hint)


def test_words_of_ones_own_begin_with_x() -> None:
    assert parameters_schema({"a": {"type": "string", "x-order": 3}})["properties"]["a"]["x-order"] == 3


@pytest.mark.parametrize(
    ("document", "told"),
    [
        (
            {"properties": {"a": {"type": "integer"}, "b": {}}, "required": ["a"]},
            "a=integer, b=any (optional)",
        ),
        (
            {"properties": {"a": {"type": ["integer", "null"]}, "b": True}},
            "a=integer or null (optional), b=any (optional)",
        ),
        ({"additionalProperties": False}, "nothing"),
        ({"type": "object", "required": ["a"]}, None),
        ({}, None),
    ],
)
def test_the_expected_values_are_named_where_they_are_known(
    document: dict[str, Any], told: str | None
) -> None:
    assert Schema(document).takes() == (told and f"It takes: {told}.")
