"""The fast answer against the slow one: it may say no too often, and never yes too often."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from penstock.language.schemas import formats
from penstock.language.schemas.fast_validator import compile_fast_validator

TYPES = st.sampled_from(["object", "array", "string", "integer", "number", "boolean", "null"])
NAMES = st.sampled_from(["a", "b", "c"])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.0, 1.0, 1.5, -2.0])
    | st.sampled_from(["", "a", "ab", "abc", "2030-01-01", "2030-01-01T00:00:00Z"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


def _schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    words: dict[str, st.SearchStrategy[Any]] = {
        "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
        "properties": st.dictionaries(NAMES, inner, max_size=3),
        "required": st.lists(NAMES, max_size=2, unique=True),
        "additionalProperties": inner | st.booleans(),
        "items": inner,
        "anyOf": st.lists(inner, min_size=1, max_size=2),
        "allOf": st.lists(inner, min_size=1, max_size=2),
        "enum": st.lists(st.sampled_from(["a", "ab", None]), min_size=1, max_size=2, unique=True),
        "const": st.sampled_from(["a", None]),
        "pattern": st.sampled_from(["^a", "b$", "."]),
        "format": st.sampled_from(["date", "date-time", "email"]),
        "minimum": st.integers(-2, 2),
        "maximum": st.integers(-2, 2),
        "exclusiveMinimum": st.integers(-2, 2),
        "exclusiveMaximum": st.integers(-2, 2),
        "minLength": st.integers(0, 3),
        "maxLength": st.integers(0, 3),
        "minItems": st.integers(0, 3),
        "maxItems": st.integers(0, 3),
        "uniqueItems": st.just(True),
        "description": st.just("words"),
        "$ref": st.just("#/$defs/other"),
    }
    return st.fixed_dictionaries({}, optional=words)


SCHEMAS = st.recursive(st.fixed_dictionaries({}, optional={"type": TYPES}), _schemas, max_leaves=6)


@settings(max_examples=300)
@given(SCHEMAS, SCHEMAS, st.lists(VALUES, min_size=1, max_size=5))
def test_a_quick_yes_is_a_yes_of_the_full_validator(schema: Any, other: Any, values: list[Any]) -> None:
    other.pop("$ref", None)
    document = {**schema, "$defs": {"other": _without_references(other)}}
    quick = compile_fast_validator(document)
    full = Draft202012Validator(document, format_checker=formats.checker())
    for value in values:
        if quick is not None:
            assert quick(value) == full.is_valid(value)


def _without_references(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _without_references(value) for key, value in node.items() if key != "$ref"}
    return [_without_references(one) for one in node] if isinstance(node, list) else node


def test_ordinary_schemas_are_quick() -> None:
    assert (
        compile_fast_validator({"type": "object", "properties": {"a": {"type": "string", "secret": True}}})
        is not None
    )


def test_a_schema_may_refer_to_itself() -> None:
    tree = {"type": "object", "properties": {"left": {"$ref": "#"}}, "additionalProperties": False}
    quick = compile_fast_validator(tree)
    assert quick is not None
    assert quick({"left": {"left": {}}})
    assert not quick({"left": {"right": {}}})


def test_what_it_does_not_know_it_leaves_to_the_full_validator() -> None:
    assert compile_fast_validator({"uniqueItems": True}) is None
    assert compile_fast_validator({"enum": [1, True]}) is None
