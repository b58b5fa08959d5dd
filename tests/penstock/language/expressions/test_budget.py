"""Expressions that would take for ever or all the memory are refused. Else their tests would not end."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.language.expressions import Expression, ExpressionError, compile_template, render
from penstock.language.expressions.budget import (
    MAX_SOURCE,
    MAX_STEPS,
    MAX_TEXT,
    Refused,
    budget,
    spend,
    spend_on,
)

NAMESPACE: dict[str, Any] = {
    "rows": [{"id": n, "name": f"n{n}"} for n in range(100_000)],
    "nums": list(range(100_000)),
    "text": "x" * 1_000_000,
}
STEPS, TEXT, BITS, RANGE = (
    "takes more than",
    "a text of more than",
    "an integer of more than",
    "a range of more than",
)


def doubling(start: str, twice: str, end: str) -> str:
    return "{% set a = " + start + " %}" + ("{% set a = " + twice + " %}") * 100 + end


def in_a_loop(body: str) -> str:
    return "{% for i in nums %}" + body + "{% endfor %}"


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{{ 9 ** 9 ** 9 ** 9 ** 9 }}", BITS),
        ("{{ 10 ** (10 ** 9) }}", BITS),
        (doubling("3", "a * a", "{{ a }}"), BITS),
        ("{{ 'x' * 10 ** 9 }}", TEXT),
        ("{{ 10 ** 9 * 'x' }}", TEXT),
        ("{{ [0] * 10 ** 9 }}", STEPS),
        ("{{ range(10 ** 9) }}", RANGE),
        ("{{ range(10 ** 30) }}", RANGE),
        (doubling("'x'", "a + a", "{{ a | length }}"), TEXT),
        (doubling("'x'", "a ~ a", "{{ a | length }}"), TEXT),
        (doubling("[1]", "a + a", "{{ a | length }}"), STEPS),
        # small in memory, endless to walk
        (doubling("[1]", "[a, a]", "{{ a }}"), STEPS),
        (doubling("[1]", "[a, a]", "{{ a | tojson }}"), STEPS),
        (doubling("[1]", "[a, a]", "{{ a ~ '' }}"), STEPS),
        (doubling("[1]", "[a, a]", "{{ [a] == [a] }}"), STEPS),
        (doubling("[1]", "[a, a]", "{{ a < [a] }}"), STEPS),
        (doubling("[1]", "[a, a]", "{{ [a, a] | sort }}"), STEPS),
        (doubling("[1]", "[a, a]", "{{ a is eq(a) }}"), STEPS),
        (doubling("[1]", "{'k': a, 'l': a}", "{{ [a] | max }}"), STEPS),
        (doubling("(1,)", "(a, a)", "{{ [a, a] | unique }}"), STEPS),
        (doubling("(1,)", "(a, a)", "{{ a in [(1,)] }}"), STEPS),
        (doubling("(1,)", "(a, a)", "{{ {a: 1} }}"), "a tuple cannot be a key"),
        (doubling("nums", "zip(a, a)", "{{ a }}"), STEPS),
        # text that multiplies
        ("{{ text | replace('x', text) }}", TEXT),
        ("{{ text.replace('x', 'yy') }}", TEXT),
        ("{{ ('y' * 1000000).join(['a', 'b', 'c']) }}", TEXT),
        ("{{ range(1000) | join(text) }}", STEPS),
        ("{{ text }}{{ text }}", TEXT),
        ("{{ text ~ text }}", TEXT),
        # loops
        ("{% for i in nums %}{% for j in nums %}{{ i }}{% endfor %}{% endfor %}", STEPS),
        ("{% for i in nums %}" + "x" * 10_000 + "{% endfor %}", TEXT),
        ("{% for i in nums %}" + "{{ i }}" * 1_000 + "{% endfor %}", STEPS),
        (in_a_loop("{% if i in nums %}{% endif %}"), STEPS),
        (in_a_loop("{% if 'y' in text %}{% endif %}"), STEPS),
        (in_a_loop("{% if text == text ~ i %}{% endif %}"), STEPS),
        (in_a_loop("{% if rows == rows %}{% endif %}"), STEPS),
        (in_a_loop("{% set z = text[1:] %}"), STEPS),
        (in_a_loop("{% set z = nums[1:] %}"), STEPS),
        (in_a_loop("{% set z = text.upper() %}"), STEPS),
        (in_a_loop("{% set z = text | int(0) %}"), STEPS),
        (in_a_loop("{% set z = ('[' * 100000) | fromjson %}"), STEPS),
        (in_a_loop("{% set z = rows | list %}"), STEPS),
        (in_a_loop("{% set z = rows | map(attribute='id') %}"), STEPS),
        (in_a_loop("{% set z = min(nums) %}"), STEPS),
        (in_a_loop("{% set z = range(1000) %}"), STEPS),
        (in_a_loop("{% set z = {} | combine(rows[0]) %}"), STEPS),
        ("{{ nums | map(attribute='" + "a." * 7_000 + "a') }}", STEPS),
        ("{{ nums | sum(attribute='" + "a." * 7_000 + "a') }}", STEPS),
        ("{{ nums | sort(attribute='" + "a," * 7_000 + "a') }}", STEPS),
    ],
)  # fmt: skip
def test_it_is_refused(template: str, reason: str) -> None:
    with pytest.raises(ExpressionError) as refused:
        render(template, NAMESPACE)
    assert reason in refused.value.message


@pytest.mark.parametrize(
    "source",
    [
        "{{ " + "(" * 3_000 + "1" + ")" * 3_000 + " }}",
        "{{ " + "[" * 3_000 + "]" * 3_000 + " }}",
        "{{ 1" + " + 1" * 3_000 + " }}",
        "{{ " + "not " * 3_000 + "1 }}",
        "{{ " + "-" * 3_000 + "1 }}",
        "{{ a" + ".b" * 3_000 + " }}",
        "{{ 1" + " | abs" * 2_000 + " }}",
        "{{ 1" + " if 1 else 1" * 1_000 + " }}",
        "{% if a %}" * 500 + "{% endif %}" * 500,
        "{% for a in [1] %}" * 25 + "{% endfor %}" * 25,
        "{{ " + "9" * 5_000 + " }}",
        "{{ 1 }}" + "x" * MAX_SOURCE,
    ],
    ids=lambda source: source[:16],
)
def test_a_too_long_or_deep_expression_is_refused_when_defined(source: str) -> None:
    with pytest.raises(ExpressionError, match=r"too deeply|too long|longer than"):
        Expression(source)


def test_text_without_expressions_may_be_long() -> None:
    assert render("x" * 3 * MAX_TEXT, {}) == "x" * 3 * MAX_TEXT


def test_ordinary_work_on_ordinary_lists_is_within_the_budget() -> None:
    template = {
        "ids": "{{ rows[:5000] | selectattr('id', 'lt', 4000) | map(attribute='id') }}",
        "total": "{{ rows | map(attribute='id') | sum }}",
        "text": "{% for row in rows[:2000] %}{{ row.name }}{{ ', ' if not loop.last else '' }}{% endfor %}",
        "deep": "{{ ((((((((((((((((((((1)))))))))))))))))))) }}",
        "many": "{{ rows[0].id == 0 " + "and rows[1].id == 1 " * 50 + "}}",
    }
    result = render(template, NAMESPACE)
    assert len(result["ids"]) == 4000
    assert result["total"] == 4_999_950_000
    assert result["text"].endswith("n1998, n1999")
    assert result["deep"] == 1
    assert result["many"] is True


def test_all_expressions_of_a_structure_share_one_budget() -> None:
    loop = "{% for i in range(40000) %}{{ '' }}{% endfor %}"
    assert render(loop, {}) == ""
    with pytest.raises(ExpressionError, match=STEPS):
        compile_template([loop] * 10)({})


def test_each_rendering_has_a_fresh_budget() -> None:
    once = compile_template("{% for i in range(40000) %}{{ '' }}{% endfor %}")
    for _ in range(10):
        assert once({}) == ""


def test_a_budget_inside_another_one_does_not_refill_it() -> None:
    with budget():
        spend(MAX_STEPS - 10)
        with budget():
            spend(MAX_STEPS - 10)
        spend(10)
        with pytest.raises(Refused):
            spend(1)


def test_a_value_that_contains_itself_is_refused() -> None:
    endless: list[Any] = []
    endless += [endless, endless]
    with budget(), pytest.raises(Refused, match=STEPS):
        spend_on(endless)
