from __future__ import annotations

from typing import Any

import pytest

from penstock.language.expressions import Condition, ExpressionError, condition

NAMESPACE: dict[str, Any] = {
    "a": 5,
    "text": "false",
    "empty": "",
    "list": [1],
    "none_": None,
    "d": {"k": "}}"},
}


@pytest.mark.parametrize(
    ("source", "holds"),
    [
        ("a > 4", True),
        ("{{ a > 4 }}", True),
        ("{{ a > 4 }}\n", True),
        ("  {{ a < 4 }}  ", False),
        ("a > 4 and not (a == 5)", False),
        ("a\n  > 4", True),
        ("a > 4 if list else false", True),
        ("d.k == '}}'", True),
        ("d['k'] == '}}' and {'a': {'b': 1}}.a.b == 1", True),
        ("nope is defined", False),
        ("nope is undefined or nope > 3", True),
        ("a in [1, 5]", True),
        ("a not in (1, 5)", False),
        # truth as in Python, never guessed from what a text says
        ("text", True),
        ("{{ text }}", True),
        ("'false'", True),
        ("'0'", True),
        ("empty", False),
        ("list", True),
        ("[]", False),
        ("none_", False),
        ("0", False),
        ("true", True),
        ("false", False),
        (True, True),
        (False, False),
    ],
)
def test_a_condition_is_true_or_false(source: str | bool, holds: bool) -> None:
    assert condition(source)(NAMESPACE) is holds


@pytest.mark.parametrize(
    ("source", "where"),
    [
        ("", "line 1, column 1"),
        ("   ", "column"),
        ("a >", "column"),
        ("a > 4)", "line 1, column 6: unexpected ')'"),
        ("a\n> > 4", "line 2, column 3"),
        ("a b", "line 1, column 3: unexpected 'b'"),
        ("a {{ b }}", "line 1, column 3"),
        ("{{ a }} and {{ a }}", "a condition is one expression"),
        ("{{ a }} > 4", "a condition is one expression"),
        ("{% if a %}x{% endif %}", "a condition is one expression"),
        ("{# nothing #}", "a condition is one expression"),
        ("}} {{ 1", "column 1"),
        ("a > 4 if list", "this `if` has no `else`"),
    ],
)
def test_a_condition_that_is_not_one_expression_is_refused(source: str, where: str) -> None:
    with pytest.raises(ExpressionError) as refused:
        Condition(source)
    assert where in refused.value.message


@pytest.mark.parametrize(
    "source", ["nope", "nope > 3", "nope and a", "not nope", "a > 4 and nope.x", "nope in [1]"]
)
def test_an_undefined_name_is_an_error_and_not_false(source: str) -> None:
    with pytest.raises(ExpressionError, match="`nope` is not defined"):
        condition(source)(NAMESPACE)


def test_and_and_or_stop_as_soon_as_they_know() -> None:
    assert condition("a > 9 and nope")(NAMESPACE) is False
    assert condition("a > 4 or nope")(NAMESPACE) is True


def test_a_condition_is_compiled_once() -> None:
    assert condition("a > 4") is condition("a > 4")
