from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import orjson
import pytest

from penstock.bounds import PAYLOAD_CAP
from penstock.errors import CheckTooCostly, DefinitionError, InvalidInput
from penstock.language.schemas import Schema, check_schema, mask, parameters_schema
from penstock.language.schemas import schema as schema_module
from penstock.language.schemas.schema import _Cache
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
    assert (
        Schema(ORDER).check({"customer": "c", "amount": 3}, cap=PAYLOAD_CAP) == b'{"amount":3,"customer":"c"}'
    )


def test_datetimes_and_tuples_count_as_the_json_they_become() -> None:
    at = datetime(2030, 1, 2, tzinfo=UTC)
    assert orjson.loads(Schema(ORDER).check({"customer": "c", "at": at}, cap=PAYLOAD_CAP))["at"].startswith(
        "2030-01-02"
    )
    assert Schema({"type": "array"}).check((1, 2), cap=PAYLOAD_CAP) == b"[1,2]"


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
        Schema(ORDER).check(value, cap=PAYLOAD_CAP)
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
            schema.check(value, cap=PAYLOAD_CAP)
        assert "hunter2" not in str(raised.value)
        assert "987654" not in str(raised.value)


def test_value_that_came_out_of_a_parser_is_checked_as_it_is() -> None:
    with pytest.raises(InvalidInput, match="expected array, got tuple"):
        Schema({"type": "array"}).check((1,), cap=9, decoded=True)


def test_the_whole_value_is_named_when_it_is_a_payload() -> None:
    with pytest.raises(InvalidInput, match=r"^payload has 2 bytes of JSON; at most 1 are taken"):
        Schema({}).check({}, what="payload", cap=1)
    with pytest.raises(InvalidInput, match=r"payload\.customer"):
        Schema(ORDER).check({"customer": 3}, what="payload", cap=PAYLOAD_CAP)


def test_without_a_schema_anything_that_is_json_is_taken() -> None:
    empty: dict[str, Any] | None
    for empty in (None, {}):
        assert Schema(empty).check([1, {"x": None}], cap=PAYLOAD_CAP) == b'[1,{"x":null}]'
        with pytest.raises(InvalidInput, match="bytes"):
            Schema(empty).check("x" * 100, cap=10)


def test_unique_items_are_checked() -> None:
    schema = Schema({"type": "array", "uniqueItems": True})
    assert schema.check([1, 2], cap=5) == b"[1,2]"
    with pytest.raises(InvalidInput, match="uniqueItems"):
        schema.check([1, 1], cap=5)


def test_a_schema_that_refers_elsewhere_is_never_fetched() -> None:
    with pytest.raises(Wrong, match=r"refers to 'http://127\.0\.0\.1:9/x'") as raised:
        check_schema({"properties": {"a": {"$ref": "http://127.0.0.1:9/x"}}})
    assert "$defs" in str(raised.value.hint)
    stored_nevertheless = Schema({"$ref": "http://127.0.0.1:9/x"})
    with pytest.raises(Exception, match="refers to"):
        stored_nevertheless.validate({})


def test_schema_that_refers_on_too_often_is_refused() -> None:
    chain = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(1_500)} | {"d1500": {}}
    with pytest.raises(Wrong, match="too often"):
        check_schema({"$ref": "#/$defs/d0", "$defs": chain})


@pytest.mark.parametrize("value", [{"id": uuid4()}, {"id": datetime(2030, 1, 2, tzinfo=UTC)}])
def test_value_is_checked_as_the_json_it_becomes(value: Any) -> None:
    with pytest.raises(InvalidInput, match="maxLength"):
        Schema({"properties": {"id": {"maxLength": 5}}}).check(value, cap=PAYLOAD_CAP)


def test_a_value_too_deep_for_a_recursive_schema_is_refused_not_crashed_on() -> None:
    schema = Schema({"properties": {"in": {"$ref": "#"}}, "uniqueItems": True})
    value: dict[str, Any] = {}
    for _ in range(5000):
        value = {"in": value}
    with pytest.raises(InvalidInput, match="deep"):
        schema.validate(value)


def test_a_value_without_secrets_is_not_even_copied() -> None:
    value = {"customer": "c"}
    schema = Schema({"properties": {"customer": {"type": "string"}}})
    assert schema.mask(value) is value
    assert mask(value, None) is value


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


def test_list_of_expected_values_is_cut() -> None:
    document = {"properties": {f"k{n:02}": True for n in range(51)}}
    takes = str(Schema(document).takes())
    assert takes.endswith("k48=any (optional), k49=any (optional), ....")
    del document["properties"]["k00"]
    assert str(Schema(document).takes()).endswith("k50=any (optional).")
    assert (
        Schema({"properties": {"n" * 101: True}, "required": ["n" * 101]}).takes()
        == f"It takes: {'n' * 99}…=any."
    )


def test_faults_that_are_told_are_few_and_their_first_hint_is_told() -> None:
    schema = Schema(
        {"items": {"additionalProperties": False, "properties": {"amount": {}}, "type": "object"}}
    )
    with pytest.raises(InvalidInput) as refused:
        schema.validate([1, {"amonut": 1}, 2, 3, 4, 5], what="list")
    assert refused.value.message == (
        "list[0]: expected object, got integer; list[1]: unknown 'amonut'; list[2]: expected object, got integer; "
        "list[3]: expected object, got integer; list[4]: expected object, got integer"
    )
    assert refused.value.hint == "Did you mean 'amount'?"
    with pytest.raises(InvalidInput) as refused:
        schema.validate([1], what="list")
    assert refused.value.hint is None


STORED = {"$stored": f"2030-01-02/{uuid4()}-{'0' * 64}.json", "bytes": 7}


@pytest.mark.parametrize("value", [STORED, {"a": STORED}, {"a": [STORED]}])
def test_stored_result_fits_as_far_as_can_be_told(value: Any) -> None:
    Schema(
        {"properties": {"a": {"items": {"type": "string"}, "maxProperties": 0}}, "maxProperties": 1}
    ).validate(value)


def test_fault_beside_a_stored_result_is_told() -> None:
    with pytest.raises(InvalidInput, match=r"^parameters\.b: expected string, got integer$"):
        Schema({"additionalProperties": {"type": "string"}}).validate({"a": STORED, "b": 1})


def test_check_that_costs_too_much_names_its_subject() -> None:
    schema = Schema({"items": {"anyOf": [{"const": n} for n in range(4_900)]}})
    with pytest.raises(
        CheckTooCostly, match=r"^payload: checking it against its schema takes more than 600,000 steps$"
    ) as refused:
        schema.validate([4_899] * 1_000, what="payload")
    assert "smaller value" in str(refused.value.hint)


def test_telling_of_faults_that_costs_too_much_is_cut_short() -> None:
    schema = Schema({"items": {"anyOf": [{"const": n} for n in range(4_900)]}})
    with pytest.raises(InvalidInput, match=r"^payload: does not fit its schema$") as refused:
        schema.validate([-1, *[4_899] * 1_000], what="payload")
    assert not isinstance(refused.value, CheckTooCostly)
    assert "smaller value" in str(refused.value.hint)


def test_schemas_that_are_equal_are_compiled_once() -> None:
    first = Schema({"type": "integer", "title": "one compiled form"})
    again = Schema({"title": "one compiled form", "type": "integer"})
    assert again._validator is first._validator
    assert Schema({"type": "integer", "title": "another"})._validator is not first._validator


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch) -> _Cache:
    """A cache that is empty, in which four schemas of these tests, or 100 bytes, have room."""
    monkeypatch.setattr(schema_module, "CACHED", 4)
    monkeypatch.setattr(schema_module, "CACHED_BYTES", 100)
    return _Cache()


def test_cache_of_schemas_forgets_the_oldest_beyond_its_number(cache: _Cache) -> None:
    documents = [{"maximum": n} for n in range(5)]
    compiled = [cache.compiled(document) for document in documents]
    assert cache._size == 4 * 13
    assert [cache.compiled(document) for document in documents[1:]] == compiled[1:]
    assert cache.compiled(documents[0]) is not compiled[0]
    assert cache.compiled(documents[1]) is not compiled[1]


def test_cache_of_schemas_forgets_the_oldest_beyond_its_bytes(cache: _Cache) -> None:
    documents = [{"title": "x" * size} for size in (20, 21, 34)]  # 32, 33 and 46 bytes of JSON
    compiled = [cache.compiled(document) for document in documents]
    assert cache._size == 33 + 46
    assert cache.compiled(documents[1]) is compiled[1]
    assert cache.compiled(documents[0]) is not compiled[0]
    assert cache.compiled({"title": "x" * 200}) is cache.compiled({"title": "x" * 200})
    assert cache._size == 212


def test_cache_of_schemas_is_full_at_its_bytes_and_not_before(cache: _Cache) -> None:
    documents = [{"title": "x" * 38}, {"title": "y" * 38}]
    compiled = [cache.compiled(document) for document in documents]
    assert cache._size == 100
    assert [cache.compiled(document) for document in documents] == compiled


def test_schema_with_a_mark_anywhere_masks() -> None:
    assert Schema({"$defs": {"a": {"secret": True}}, "$ref": "#/$defs/a"}).mask("x") == "***"
    assert mask({"a": 1}, {"properties": {"a": {"writeOnly": True}}}) == {"a": "***"}
    assert Schema({"type": "string"}).secrets_of("x") == []


def test_schema_that_refers_on_too_often_cannot_be_compiled() -> None:
    chain = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(5_000)} | {"d5000": {}}
    with pytest.raises(DefinitionError, match="refers from part to part too often"):
        Schema({"$ref": "#/$defs/d0", "$defs": chain})
