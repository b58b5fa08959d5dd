from __future__ import annotations

from typing import Any

import pytest

from penstock.language.expressions import ExpressionError, NamesUsed, condition, names_used


@pytest.mark.parametrize(
    ("template", "paths"),
    [
        ("no braces", set()),
        ("{{ tasks.fetch.result.x }}", {("tasks", "fetch", "result", "x")}),
        ("{{ tasks['fetch'].result[0]['a b'] }}", {("tasks", "fetch", "result", 0, "a b")}),
        ("{{ a }} {{ a.b }}", {("a",), ("a", "b")}),
        ("{{ a.b | default(c.d) | join(e) }}", {("a", "b"), ("c", "d"), ("e",)}),
        ("{{ a.items() }}", {("a",)}),
        ("{{ a.b.get('x') }}", {("a", "b")}),
        ("{{ now() }}", {("now",)}),
        ("{{ min(a, len(b)) + range }}", {("a",), ("b",), ("range",)}),
        ("{{ f(x).y.z }}", {("f",), ("x",)}),
        ("{{ a.b[1:c].d }}", {("a", "b"), ("c",)}),
        ("{{ {'k': a, b: 1}[c] if d is eq(e) else [f, (g,)] }}", {(n,) for n in "abcdefg"}),
        ("{{ a < b < c and not d or -e ~ f ** g }}", {(n,) for n in "abcdefg"}),
        ("{{ 'a.b' }}{# a.c #}{% raw %}{{ a }}{% endraw %}", set()),
        # what a template sets itself is not read from outside
        ("{% for x in a.b if x.ok == c %}{{ x.y }}{{ loop.index }}{% else %}{{ x.z }}{% endfor %}",
         {("a", "b"), ("c",), ("x", "z")}),
        ("{% for k, v in d.items() %}{{ k }}{{ v.x }}{% endfor %}{{ k }}", {("d",), ("k",)}),
        ("{% set x = x.y %}{{ x.z }}", {("x", "y")}),
        ("{% if a %}{% set x = 1 %}{% endif %}{{ x.y }}", {("a",), ("x", "y")}),
        ("{% if a %}{% set x = 1 %}{% elif b %}{% set x = 2 %}{% else %}{% set x = 3 %}{% endif %}{{ x }}",
         {("a",), ("b",)}),
        ("{% for i in a %}{% set x = 1 %}{% endfor %}{{ x }}", {("a",), ("x",)}),
        # structures
        ({"{{ k }}": ["{{ a.b }}", {"c": "{{ d }}"}], "n": 1, "t": ("{{ e }}",)},
         {("k",), ("a", "b"), ("d",), ("e",)}),
        (None, set()),
    ],
)  # fmt: skip
def test_it_finds_the_names(template: Any, paths: set[Any]) -> None:
    used = names_used(template)
    assert used.paths == paths
    assert used.roots == {path[0] for path in paths}


def test_tasks_that_are_named_and_tasks_that_only_the_run_can_tell() -> None:
    used = names_used(["{{ tasks.fetch.result }}", "{{ tasks['store'] }}", "{{ vars.x }}"])
    assert used.under("tasks") == {"fetch", "store"}
    assert used.under("tasks", "fetch") == {"result"}
    assert used.under("item") == frozenset()
    assert not used.whole("tasks")

    used = names_used("{{ tasks[vars.which].result }}")
    assert used == NamesUsed(frozenset({("tasks",), ("vars", "which")}), frozenset({("tasks",)}))
    assert used.whole("tasks")
    assert used.under("tasks") == frozenset()
    assert names_used("{{ tasks | length }}").whole("tasks")


def test_conditions_know_their_names() -> None:
    assert condition("tasks.a.status == 'failed' and not vars.x").names.paths == {
        ("tasks", "a", "status"),
        ("vars", "x"),
    }


def test_a_malformed_template_has_no_names() -> None:
    with pytest.raises(ExpressionError):
        names_used({"a": "{{ b c }}"})
