"""Patterns of schemas: their meaning is kept, and no text holds up its check."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from penstock.errors import CheckTooCostly, InvalidInput
from penstock.language.schemas import patterns
from penstock.language.schemas.budget import Budget
from penstock.language.schemas.schema import Schema
from penstock.language.schemas.schema_checks import check_schema
from penstock.language.terms.options import Wrong

ENDLESS = "^(a|aa)+$"
LONG = "a" * 60 + "!"
"""Backtracking takes more than a million million steps to refuse it."""
OBJECT: Mapping[str, Any] = {"type": "object"}
UNEVALUATED = {"allOf": [{"patternProperties": {ENDLESS: {}}}], "unevaluatedProperties": False}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"pattern": ENDLESS}, LONG),
        ({"properties": {"name": {"type": "string", "pattern": ENDLESS}}}, {"name": LONG}),
        ({"not": {"pattern": ENDLESS}}, LONG),
        ({"oneOf": [{"pattern": ENDLESS}, {"type": "null"}]}, LONG),
        ({"propertyNames": {"pattern": ENDLESS}}, {LONG: 1}),
        ({"patternProperties": {ENDLESS: {"type": "integer"}}}, {LONG: 1}),
        ({"patternProperties": {ENDLESS: {}}, "additionalProperties": False}, {LONG: 1}),
        ({"contains": {"pattern": ENDLESS}}, [LONG]),
        ({"dependentSchemas": {"a": {"propertyNames": {"pattern": ENDLESS}}}}, {"a": 1, LONG: 1}),
    ],
)
def test_a_text_that_takes_too_long_is_refused(schema: Mapping[str, Any], value: Any) -> None:
    check_schema(schema)
    with pytest.raises(InvalidInput, match="takes too long") as refused:
        Schema(schema).validate(value)
    assert "a+" in str(refused.value.hint)
    assert LONG not in str(refused.value)  # it may be secret


def test_many_texts_that_each_take_long_have_one_time_together() -> None:
    texts = ["a" * n + "!" for n in range(20, 32)] * 200  # up to some tens of milliseconds each
    with pytest.raises(InvalidInput, match="takes too long"):
        Schema({"items": {"anyOf": [{"pattern": ENDLESS}, {"type": "string"}]}}).validate(texts)
    Schema({"items": {"pattern": ENDLESS}}).validate(["aa"])  # the next check has its own


def test_masking_takes_a_match_of_an_endless_pattern_for_secret() -> None:
    schema = {"patternProperties": {ENDLESS: {"secret": True}}}
    assert Schema(schema).mask({LONG: "pearl"}) == "***"


def test_unevaluated_names_are_searched_within_the_budget() -> None:
    check_schema(UNEVALUATED)
    with pytest.raises(CheckTooCostly):
        Schema(UNEVALUATED).validate({LONG: 1})


@pytest.mark.parametrize("pattern", ["(", "[", "*a", "(?P<x", "a{2,1}", "\\"])
@pytest.mark.parametrize("word", ["pattern", "patternProperties"])
def test_a_text_that_is_not_a_pattern_is_refused(pattern: str, word: str) -> None:
    with pytest.raises(Wrong):
        check_schema({word: pattern if word == "pattern" else {pattern: {}}})


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "^[a-z][a-z0-9_-]{0,62}$",
            r"^\d{4}-\d\d$",
            r"^(?!-)[a-z-]+(?<!-)$",
            r"^(a|b)\1$",
            "é",
            r"\bword\b",
        ),
        *(r"^\S+@\S+\.\w+$", "^$", "", "^(?:[A-Z]{2}|[0-9]{3})+$", r"[^\x00-\x1f]", "[[a]", "a&&b"),
    ],
)
@pytest.mark.parametrize(
    "text", ["", "a", "aa", "ab", "2026-11", "word", "a-b", "-a", "x@y.de", "AB123", "é", "[a", "a&&b", "\n"]
)
@pytest.mark.filterwarnings("ignore:Possible")
def test_a_pattern_means_the_same_as_in_python(pattern: str, text: str) -> None:
    found = patterns.search(patterns.compiled(pattern), text, Budget())
    assert found == bool(re.search(pattern, text))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"a1": 1, "b": 2}, "unknown 'b'"),
        ({"a1": "x"}, "expected integer"),
        ({"n": "long enough"}, "does not satisfy maxLength"),
        ({"k": "B"}, "does not satisfy pattern"),
    ],
)
def test_a_value_that_does_not_fit_is_reported_in_words(value: Any, said: str) -> None:
    schema = {
        "properties": {"n": {"maxLength": 3}, "k": {"pattern": "^[a-z]$"}},
        "patternProperties": {"^a": {"type": "integer"}},
        "additionalProperties": False,
    }
    with pytest.raises(InvalidInput, match=said):
        Schema(schema).validate(value)
    Schema(schema).validate({"a1": 1, "n": "abc", "k": "a"})


def test_others_than_those_named_are_held_against_a_schema_of_theirs() -> None:
    schema = Schema({"patternProperties": {"^a": {}}, "additionalProperties": {"type": "integer"}})
    schema.validate({"a": "x", "b": 1})
    with pytest.raises(InvalidInput, match="expected integer"):
        schema.validate({"b": "x"})
