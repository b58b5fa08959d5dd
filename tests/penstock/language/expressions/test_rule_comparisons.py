"""The operators that trigger rules use when they are written as data."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import DefinitionError, ExpressionError
from penstock.language.expressions import ABSENT, OPERATORS, holds, look_up

DATA: dict[str, Any] = {"order": {"total": 5, "lines": [{"sku": "a"}], "a.b": 1}, "x.y": 2, "none": None}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("order.total", 5),
        ("order.lines.0.sku", "a"),
        ("x.y", 2),
        ("none", None),
        ("order.nope", ABSENT),
        ("order.lines.1", ABSENT),
        ("order.lines.x", ABSENT),
        ("order.total.x", ABSENT),
        ("", ABSENT),
    ],
)
def test_a_path_leads_to_a_value_or_nowhere(path: str, value: Any) -> None:
    assert look_up(path, DATA) is value or look_up(path, DATA) == value


@pytest.mark.parametrize(
    ("actual", "operator", "expected", "result"),
    [
        (5, "==", 5, True),
        (5, "==", "5", False),
        (5, "!=", 4, True),
        (5, ">", 4, True),
        (5, ">=", 5, True),
        (5, "<", 5, False),
        (5, "<=", 5, True),
        (5, "in", [4, 5], True),
        (5, "not in", [4, 5], False),
        ([1, 2], "contains", 2, True),
        ("hello", "contains", "ell", True),
        ({"k": 1}, "contains", "k", True),
        ([1, 2], "not contains", 3, True),
        (None, "exists", None, True),
        (None, "not exists", None, False),
        (None, "==", None, True),
        # of what is not there, only the negations hold
        (ABSENT, "exists", None, False),
        (ABSENT, "not exists", None, True),
        (ABSENT, "==", None, False),
        (ABSENT, "!=", 3, True),
        (ABSENT, ">", 3, False),
        (ABSENT, "in", [3], False),
        (ABSENT, "not in", [3], True),
        (ABSENT, "contains", 3, False),
        (ABSENT, "not contains", 3, True),
    ],
)
def test_a_value_is_compared(actual: Any, operator: str, expected: Any, result: bool) -> None:
    assert holds(operator, actual, expected) is result


def test_values_that_cannot_be_compared_are_an_error() -> None:
    with pytest.raises(ExpressionError, match="`>` does not compare a str and a int"):
        holds(">", "a", 1)
    with pytest.raises(ExpressionError, match="only text can be `in` a text"):
        holds("contains", "abc", 1)


def test_stored_result_is_not_compared() -> None:
    digest = "a" * 64
    stored = {"$stored": f"2030-01-01/00000000-0000-7000-8000-000000000000-{digest}.json", "bytes": 300_000}
    with pytest.raises(ExpressionError, match="in the result store"):
        look_up("rows.total", {"rows": stored})
    for operator in ("==", "!=", "in", "contains", "not contains"):
        with pytest.raises(ExpressionError, match="in the result store"):
            holds(operator, look_up("rows", {"rows": stored}), "bytes" if "contains" in operator else ["x"])
    assert holds("exists", stored)


def test_an_unknown_operator_is_refused_with_a_suggestion() -> None:
    with pytest.raises(DefinitionError) as refused:
        holds("contain", [1], 1)
    assert "contain" in refused.value.message
    assert (refused.value.hint or "").startswith("Did you mean `contains`?")
    assert all(name in (refused.value.hint or "") for name in OPERATORS)
