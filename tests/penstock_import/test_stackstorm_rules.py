"""Criteria hold when StackStorm's hold. The oracle is written from the documentation and the source of its operators, by reading;
none of it is copied."""

from __future__ import annotations

import fnmatch
import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from jinja2 import Template

from penstock.language.expressions import compile_template, condition
from penstock_import.stackstorm_rules import condition_of, criterion, parameters
from penstock_import.wanted_text import NotMapped

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda value, pattern: value == pattern,
    "neq": lambda value, pattern: value != pattern,
    "ieq": lambda value, pattern: value.lower() == pattern.lower(),
    "lt": lambda value, pattern: value < pattern,
    "gt": lambda value, pattern: value > pattern,
    "contains": lambda value, pattern: pattern in value,
    "ncontains": lambda value, pattern: pattern not in value,
    "icontains": lambda value, pattern: pattern.lower() in value.lower(),
    "incontains": lambda value, pattern: pattern.lower() not in value.lower(),
    "startswith": lambda value, pattern: value.startswith(pattern),
    "istartswith": lambda value, pattern: value.lower().startswith(pattern.lower()),
    "endswith": lambda value, pattern: value.endswith(pattern),
    "iendswith": lambda value, pattern: value.lower().endswith(pattern.lower()),
    "inside": lambda value, pattern: value in pattern,
    "nin": lambda value, pattern: value not in pattern,
    "matchwildcard": fnmatch.fnmatch,
    "matchregex": lambda value, pattern: re.compile(pattern, re.DOTALL).match(value) is not None,
    "regex": lambda value, pattern: re.search(pattern, value) is not None,
}
VALUES = [None, 0, 1, 5, 2.5, True, "", "a", "Bath", "null pointer", "x.y", ["a", "b"], {"a": 1}]
PATTERNS = [
    None,
    0,
    5,
    True,
    "",
    "a",
    "BATH",
    "null pointer",
    "ba*",
    "*th",
    "^Ba",
    "a|x",
    "x\\.y",
    "B+",
    ["a", 5],
]


def holds_there(kind: str, payload: dict[str, Any], pattern: Any) -> bool:
    """Return what StackStorm says: an operator that fails does not hold, nor does one without a pattern."""
    value = payload.get("v")
    if not payload:
        return False
    if pattern is None and kind != "neq":
        return False
    try:
        return bool(OPERATORS[kind](value, pattern))
    except Exception:
        return False


def holds_here(text: str, payload: dict[str, Any]) -> bool:
    try:
        return condition(text)({"payload": payload})
    except Exception:
        return False  # the rule does not match, and says why


@pytest.mark.parametrize("kind", OPERATORS)
def test_operator_holds_when_stackstorms_holds(kind: str) -> None:
    compared = 0
    for pattern in PATTERNS:
        try:
            text = condition_of([("trigger.v", {"type": kind, "pattern": pattern})])
        except NotMapped:
            continue
        payloads: list[dict[str, Any]] = [{}, {"w": 1}, *({"v": value} for value in VALUES)]
        for payload in payloads:
            assert holds_here(text, payload) == holds_there(kind, payload, pattern), (text, payload, pattern)
            compared += 1
    assert compared > 50


def test_text_within_a_pattern_stays_as_it_is() -> None:
    ours = criterion("trigger.message", {"type": "contains", "pattern": "null pointer of trigger"})
    assert '"null pointer of trigger"' in ours


def test_the_same_path_twice() -> None:
    text = condition_of(
        [("trigger.a#1", {"type": "gt", "pattern": 1}), ("trigger.a#2", {"type": "lt", "pattern": 5})]
    )
    assert [number for number in range(8) if holds_here(text, {"a": number})] == [2, 3, 4]


def test_existence_is_about_null() -> None:
    exists = condition_of([("trigger.a.b", {"type": "exists"})])
    absent = condition_of([("trigger.a.b", {"type": "nexists"})])
    payloads: list[dict[str, Any]] = [{"a": {"b": 0}}, {"a": {"b": None}}, {"a": {}}, {"c": 1}]
    assert [holds_here(exists, payload) for payload in payloads] == [True, False, False, False]
    assert [holds_here(absent, payload) for payload in payloads] == [False, True, True, True]
    assert not holds_here(absent, {})  # of an empty payload StackStorm asks nothing


@pytest.mark.parametrize(
    "spec",
    [
        {"type": "search", "pattern": {}, "condition": "any"},
        {"type": "timediff_lt", "pattern": 5},
        {"type": "regex", "pattern": "a.c"},
        {"type": "eq", "pattern": "{{ trigger.b }}"},
        {"type": "iregex", "pattern": "a"},
    ],
)
def test_operator_without_an_equal_is_refused(spec: dict[str, Any]) -> None:
    with pytest.raises(NotMapped):
        criterion("trigger.a", spec)


def test_parameters_have_the_type_of_the_action() -> None:
    assert parameters("{{ trigger.n }}", "string") == "{{ payload.n | string }}"
    assert parameters("{{ trigger.n }}", ["integer", "null"]) == "{{ payload.n | int }}"
    assert parameters("{{ trigger.n }}") == "{{ payload.n }}"
    assert parameters("say 'trigger' to {{ trigger['trigger'] }}") == "say 'trigger' to {{ payload.trigger }}"


def test_expression_within_a_mapping_or_a_list_gives_text() -> None:
    nested = {
        "body": {"count": "{{ trigger.n }}", "ids": ["{{ trigger.n }}", 5], "note": "n is {{ trigger.n }}"}
    }
    ours = compile_template(parameters(nested, "object"))
    assert ours({"payload": {"n": 7}}) == {"body": {"count": "7", "ids": ["7", 5], "note": "n is 7"}}


def test_block_of_jinja_gives_the_text_that_jinja_gives() -> None:
    text = "{% if trigger.ok %}all of {{ trigger.n }}{% elif trigger.n > 2 %}{{ trigger.n }}{% else %}{% endif %}"
    ours = compile_template(parameters(text, "string"))
    for payload in ({"ok": True, "n": 1}, {"ok": False, "n": 3}, {"ok": False, "n": 1}):
        assert ours({"payload": payload}) == Template(text).render(trigger=payload)


def test_random_criteria_are_all_of_them() -> None:
    rng = random.Random(1)
    for _ in range(60):
        criteria = [
            (
                f"trigger.{rng.choice('vw')}",
                {"type": rng.choice(["eq", "neq", "contains"]), "pattern": rng.choice(["a", 5])},
            )
            for _ in range(2)
        ]
        text = condition_of(criteria)
        payload = {name: rng.choice(VALUES) for name in "vw" if rng.random() < 0.8}
        expected = all(
            holds_there(str(spec["type"]), {"v": payload.get(path[-1])} if payload else {}, spec["pattern"])
            for path, spec in criteria
        )
        assert holds_here(text, payload) == expected, (criteria, payload)
