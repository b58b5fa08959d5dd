"""Patterns of schemas: their meaning is kept, and no text holds up its check."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
import regex

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


def test_patterns_count_their_characters_and_64_more_each() -> None:
    assert patterns.length(["", "abc", "\u00e4"]) == 64 + 67 + 65
    assert patterns.length([]) == 0


def test_pattern_is_searched_anywhere_in_a_text() -> None:
    budget = Budget()
    assert patterns.search(patterns.compiled("b"), "abc", budget) is True
    assert patterns.search(patterns.compiled("x"), "abc", budget) is False


@pytest.mark.parametrize("left", [0, -1])
def test_search_without_steps_is_refused(left: int) -> None:
    with pytest.raises(
        CheckTooCostly, match=r"a text of 1,000 characters takes too long .* the pattern 'b'"
    ) as refused:
        patterns.search(patterns.compiled("b"), "a" * 1_000, Budget(left))
    assert "match in one way" in str(refused.value.hint)


def test_search_costs_the_processor_time_that_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([10.0, 10.25])
    monkeypatch.setattr("time.thread_time", lambda: next(clock))
    budget = Budget(3_000_000)
    assert patterns.search(patterns.compiled("b"), "ab", budget)
    assert budget.left == 3_000_000 - 1_000_000 - 4


def test_search_may_take_the_last_step_and_no_other_does(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([1.0, 2.0, 3.0, 3.0])
    monkeypatch.setattr("time.thread_time", lambda: next(clock))
    budget = Budget(3_000_000)
    assert patterns.search(patterns.compiled("b"), "ab", budget)
    assert budget.left == -1_000_004
    with pytest.raises(CheckTooCostly):
        patterns.search(patterns.compiled("b"), "ab", budget)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", "missing"),
        ("a{2,1}", "min repeat"),
        ("()" * 1_001, "it has more than 1,000 groups"),
    ],
)
def test_pattern_that_is_none_tells_why(pattern: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        patterns.compiled(pattern)


@pytest.mark.parametrize(
    "error", [RecursionError("too deep"), OverflowError("too deep"), regex.error("too deep")]
)
def test_pattern_that_the_engine_cannot_compile_is_none(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(pattern: str) -> None:
        raise error

    monkeypatch.setattr(regex, "compile", fail)
    with pytest.raises(ValueError, match=r"^too deep$"):
        patterns.compiled(f"never compiled before: {error!r}")
