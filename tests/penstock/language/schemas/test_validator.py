"""Verdicts of the validator against two libraries that share no code with it."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, FormatChecker

from penstock.language.schemas import formats
from penstock.language.schemas.budget import Budget
from penstock.language.schemas.faults import faults
from penstock.language.schemas.validator import Validator

TYPES = st.sampled_from(["object", "array", "string", "integer", "number", "boolean", "null"])
NAMES = st.sampled_from(["a", "b", "ab", "c"])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.0, 1.0, 1.5, -2.0, 2**63, 2.0**63, 1e300, 0.1])
    | st.sampled_from(["", "a", "ab", "abc", "2030-01-01", "2030-01-01T00:00:00Z"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=10,
)
COUNTS = st.integers(0, 3)
REFERENCES = st.sampled_from(["#/$defs/p", "#/$defs/q", "#/$defs/p/properties/a"])
PATTERNS = st.sampled_from(["^a", "b$", "."])


def _schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    sub = inner | st.booleans()
    branches = st.lists(sub, min_size=1, max_size=3)
    named = st.dictionaries(NAMES, sub, max_size=3)
    words: dict[str, st.SearchStrategy[Any]] = {
        "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
        "properties": named,
        "patternProperties": st.dictionaries(PATTERNS, sub, max_size=2),
        "required": st.lists(NAMES, max_size=2, unique=True),
        "dependentRequired": st.dictionaries(NAMES, st.lists(NAMES, max_size=2, unique=True), max_size=2),
        "dependentSchemas": named,
        "additionalProperties": sub,
        "unevaluatedProperties": sub,
        "propertyNames": sub,
        "items": sub,
        "prefixItems": branches,
        "contains": sub,
        "minContains": COUNTS,
        "maxContains": COUNTS,
        "unevaluatedItems": sub,
        "anyOf": branches,
        "allOf": branches,
        "oneOf": branches,
        "not": sub,
        "if": sub,
        "then": sub,
        "else": sub,
        "enum": st.lists(VALUES, min_size=1, max_size=3),
        "const": VALUES,
        "pattern": PATTERNS,
        "format": st.sampled_from(["date", "date-time", "email"]),
        "multipleOf": st.sampled_from([1, 2, 3, 0.5, 1.0]),
        "minimum": st.integers(-2, 2),
        "maximum": st.integers(-2, 2),
        "exclusiveMinimum": st.integers(-2, 2),
        "exclusiveMaximum": st.integers(-2, 2),
        "minLength": COUNTS,
        "maxLength": COUNTS,
        "minItems": COUNTS,
        "maxItems": COUNTS,
        "minProperties": COUNTS,
        "maxProperties": COUNTS,
        "uniqueItems": st.booleans(),
        "description": st.just("words"),
        "$ref": REFERENCES,
    }
    few = st.lists(st.sampled_from(sorted(words)), min_size=1, max_size=5, unique=True)
    return few.flatmap(lambda names: st.fixed_dictionaries({name: words[name] for name in names}))


SCHEMAS = st.recursive(st.fixed_dictionaries({}, optional={"type": TYPES}), _schemas, max_leaves=8)


def _checker() -> FormatChecker:
    checker = FormatChecker(formats=())
    for name in formats.FORMATS:
        checker.checks(name)(lambda value, name=name: not isinstance(value, str) or formats.fits(name, value))
    return checker


FORMATS = _checker()
RUST_FORMATS = {
    name: lambda text, name=name: formats.fits(name, text) for name in (*formats.FORMATS, "email")
}


def _document(schema: Any, p: Any, q: Any) -> dict[str, Any]:
    """One in which references lead on through properties or items, and never in a circle at the same value."""
    deeper = {
        "properties": {"a": {"$ref": "#/$defs/p"}, "b": {"$ref": "#/$defs/q"}},
        "items": {"$ref": "#/$defs/p"},
    }
    return {
        **schema,
        "$defs": {
            "p": {**_without_references(p), **deeper},
            "q": {**_without_references(q), "additionalProperties": {"$ref": "#/$defs/p"}},
        },
    }


def _without_references(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _without_references(value) for key, value in node.items() if key != "$ref"}
    return [_without_references(one) for one in node] if isinstance(node, list) else node


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SCHEMAS, SCHEMAS, SCHEMAS, st.lists(VALUES, min_size=1, max_size=6))
def test_verdicts_are_those_of_two_libraries(schema: Any, p: Any, q: Any, values: list[Any]) -> None:
    document = _document(schema, p, q)
    validator = Validator(document)
    python = Draft202012Validator(document, format_checker=FORMATS)
    rust = jsonschema_rs.Draft202012Validator(document, validate_formats=True, formats=RUST_FORMATS)
    words = _words(document)
    for value in values:
        verdict = validator.fits(value, Budget())
        assert bool(list(faults(validator, value, Budget()))) != verdict
        if (
            "multipleOf" not in words
        ):  # of a double, jsonschema-rs takes the decimal text, Python the exact value
            assert verdict == rust.is_valid(value)
        if "unevaluatedItems" not in words:  # jsonschema never asks what it expects of them
            assert verdict == python.is_valid(value)


def _words(node: Any) -> set[str]:
    if isinstance(node, dict):
        return set(node).union(*map(_words, node.values()))
    return set().union(*map(_words, node)) if isinstance(node, list) else set()
