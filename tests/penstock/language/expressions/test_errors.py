"""Errors name the expression, what is wrong with it and where, and what to write instead."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import DefinitionError, ExpressionError, NotFound
from penstock.language.expressions import Expression, compile_template, render


def error_of(template: Any, **namespace: Any) -> ExpressionError:
    with pytest.raises(ExpressionError) as caught:
        render(template, namespace)
    assert isinstance(caught.value, DefinitionError)
    return caught.value


@pytest.mark.parametrize(
    ("source", "where", "hint"),
    [
        ("{{ a = 3 }}", "line 1, column 6", "Write `==` to compare."),
        ("{{ a === 3 }}", "line 1, column 8", "Write `==` to compare."),
        ("{{ a && b }}", "line 1, column 6", "Write `and`."),
        ("{{ a || b }}", "line 1, column 7", "Write `or`."),
        ("{{ !a }}", "line 1, column 4", "Write `not x`"),
        ("{{ a ? b : c }}", "line 1, column 6", "`a if condition else b`"),
        ("{{ a b }}", "line 1, column 6: expected token 'end of print statement', got 'b'", None),
        ("text\n  {{- a b }}", "line 2, column 9", None),
        ("line\nline {{ a + }}", "line 2, column 13", None),
        ("{{ a", "column", None),
        ("{{ a\n", "line 1, column 4", None),
        ("{{ a\r\n\f b }}", "line 2, column 3", None),
        ("{% if a %}", "column", None),
        ("{% iff a %}", "line 1, column 4: Encountered unknown tag 'iff'", None),
        ("{{ a | lenght }}", "line 1, column 8: there is no filter `lenght`", "Did you mean `length`?"),
        ("{{ a is strng }}", "there is no test `strng`", "Did you mean `string`?"),
        ("{% include 'x' %}", "line 1, column 4: `include` is not part of expressions", "if, for and set"),
        ("{% set a %}x{% endset %}", "`assignblock` is not part", None),
        ("{{ a(*b) }}", "arguments cannot be spread", None),
        ("{% for a in b recursive %}{% endfor %}", "a loop cannot be recursive", None),
    ],
)
def test_a_malformed_expression_is_refused_when_it_is_defined(
    source: str, where: str, hint: str | None
) -> None:
    with pytest.raises(ExpressionError) as caught:
        Expression(source)
    assert where in caught.value.message
    assert source in caught.value.message
    if hint:
        assert hint in (caught.value.hint or "")


STORED = {"$stored": f"2030-01-01/00000000-0000-7000-8000-000000000000-{'a' * 64}.json", "bytes": 300_000}


@pytest.mark.parametrize(
    "source",
    [
        "{{ r | length }}",
        "{{ len(r) }}",
        "{{ r[0] }}",
        "{{ r[:2] }}",
        "{{ r.total }}",
        "{{ r.total | default(0) }}",
        "{{ r.total is defined }}",
        "{{ r['$stored'] }}",
        "{{ r.items() }}",
        "{{ 'x' in r }}",
        "{{ r is contains('x') }}",
        "{{ r == [] }}",
        "{{ r == other }}",
        "{{ r is mapping }}",
        "{{ r | join(';') }}",
        "{{ r | tojson }}",
        "{{ r | first }}",
        "{{ r | list }}",
        "{{ r | combine({'a': 1}) }}",
        "{{ r ~ '' }}",
        "rows: {{ r }}",
        "{% for x in r %}{{ x }}{% endfor %}",
        "{{ all | map('length') }}",
        "{{ all | map(attribute='total') }}",
        "{{ all | join }}",
        "{{ all | tojson }}",
        "{{ all[0].total }}",
        "{{ (all | first).total }}",
        "{{ 3 in all }}",
        "{{ all == [1] }}",
        "of each: {{ all }}",
    ],
)
def test_computing_with_a_stored_result_is_refused(source: str) -> None:
    error = error_of(source, r=STORED, other=dict(STORED), all=[dict(STORED)])
    assert "it is in the result store, which expressions cannot read" in error.message
    assert "Pass the whole value to an action" in (error.hint or "")


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("{{ r }}", STORED),
        ("{{ [r, 1] }}", [STORED, 1]),
        ("{{ {'of': all, 'n': all | length} }}", {"of": [STORED], "n": 1}),
        ("{{ r if r else none }}", STORED),
        ("{{ r | default([]) }}", STORED),
        ("{{ r is defined }}", True),
        ("{{ all | first }}", STORED),
    ],
)
def test_stored_result_is_passed_on_whole(source: str, value: Any) -> None:
    assert render(source, {"r": STORED, "all": [STORED]}) == value


def test_a_missing_name_is_reported_with_the_known_ones() -> None:
    error = error_of("{{ parmeters.id }}", parameters={}, system={})
    assert error.message == "`{{ parmeters.id }}`: `parmeters` is not defined."
    assert error.hint == "Did you mean `parameters`? Available: parameters, system."


def test_a_missing_key_is_told_with_its_neighbours() -> None:
    error = error_of("Hi {{ parameters.custmer.id }}", parameters={"customer": {}, "total": 1})
    assert error.message == "`Hi {{ parameters.custmer.id }}`: there is no field `custmer`."
    assert error.hint == "Did you mean `customer`? Available fields: customer, total."


def test_a_long_list_of_neighbours_is_cut() -> None:
    error = error_of("{{ x }}", **{f"name{n}": n for n in range(30)})
    assert error.hint is not None
    assert error.hint.endswith("name11 and 18 more.")


def test_a_misspelled_function_is_recognised() -> None:
    assert (error_of("{{ rnge(3) }}").hint or "").startswith("Did you mean `range`?")


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ [1, 2][5] }}", "no item 5: the value has 2 items, from 0"),
        ("{{ 5 .x }}", "a int has no `x` that an expression may use"),
        ("{{ none.x }}", "a none has no `x`"),
        ("{{ 'a'.format() }}", "a str has no `format` that an expression may use"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{{ 'a' + 1 }}", "`+` does not join text and another kind of value"),
        ("{{ 'a' > 1 }}", "not supported between instances of 'str' and 'int'"),
        ("{{ '%d' % 1 }}", "`%` does not format text here"),
        ("{{ (-8) ** 0.5 }}", "a root of a negative number"),
        ("{{ 'a' ** 2 }}", "`**` takes numbers"),
        ("{{ 1() }}", "a int cannot be called"),
        ("{{ 'a'.upper }}", "its value is a function"),
        ("{{ 'a'.upper }}!", "puts a function into a text"),
        ("{{ range }}", "its value is a function"),
        ("{{ x | first }}", "No first item, sequence was empty"),
        ("{% for a in 5 %}{% endfor %}", "a int cannot be looped over"),
        ("{{ 5[1:] }}", "a int cannot be sliced"),
        ("{{ {[1]: 2} }}", "a list cannot be a key"),
        ("{{ {}[[1]] }}", "a list cannot be a key"),
        ("{{ 1 in 'abc' }}", "only text can be `in` a text"),
        ("{{ ['a', 'b'] | sum }}", "`sum` adds numbers only"),
        ("{{ 5 | fromjson }}", "`fromjson` takes text"),
        ("{{ '[18446744073709551616]' | fromjson }}", "the text is not JSON: Integer exceeds 64-bit range"),
        ("{{ range | tojson }}", "it cannot be written as JSON"),
        ("{{ [1] | map('nope') }}", "No filter named 'nope'"),
        ("{{ 1 | round(99) }}", "`round` takes between -15 and 15 digits"),
        ("{{ 'a' | split('') }}", "it failed with ValueError"),
        # undefined, wherever it comes up
        ("{{ nope }}", "`nope` is not defined"),
        ("{{ nope }}!", "`nope` is not defined"),
        ("{{ nope.a.b }}", "`nope` is not defined"),
        ("{{ [1, nope] }}", "`nope` is not defined"),
        ("{{ {'a': {'b': nope}} }}", "`nope` is not defined"),
        ("{{ {nope: 1} }}", "`nope` is not defined"),
        ("{{ [nope] }}!", "`nope` is not defined"),
        ("{{ nope ~ 'a' }}", "`nope` is not defined"),
        ("{{ nope + 1 }}", "`nope` is not defined"),
        ("{{ nope == 1 }}", "`nope` is not defined"),
        ("{{ nope == x }}", "`nope` is not defined"),
        ("{{ nope in x }}", "`nope` is not defined"),
        ("{{ x in nope }}", "`nope` is not defined"),
        ("{{ nope in 'text' }}", "`nope` is not defined"),
        ("{{ nope in {} }}", "`nope` is not defined"),
        ("{{ nope is none }}", "`nope` is not defined"),
        ("{{ nope[1:] }}", "`nope` is not defined"),
        ("{{ nope() }}", "`nope` is not defined"),
        ("{{ len(nope) }}", "`nope` is not defined"),
        ("{{ f(nope) }}", "`nope` is not defined"),
        ("{{ f(a=nope) }}", "`nope` is not defined"),
        ("{{ nope | length }}", "`nope` is not defined"),
        ("{{ nope | int(0) }}", "`nope` is not defined"),
        ("{{ nope | items }}", "`nope` is not defined"),
        ("{{ x | join(nope) }}", "`nope` is not defined"),
        ("{{ x | default(1) | combine(nope) }}", "`nope` is not defined"),
        ("{{ nope | round }}", "`nope` is not defined"),
        ("{{ rows | map(attribute='b') }}", "no field `b`"),
        ("{{ rows | sum(attribute='b') }}", "no field `b`"),
        ("{% for a in nope %}{% endfor %}", "`nope` is not defined"),
        ("{% if nope %}{% endif %}", "`nope` is not defined"),
    ],
)  # fmt: skip
def test_a_failing_expression_gives_the_reason(template: str, message: str) -> None:
    error = error_of(template, x=[], rows=[{"a": 1}], f=lambda *args, **kwargs: 1)
    assert message in error.message
    assert template in error.message


@pytest.mark.parametrize(
    "source",
    [
        "s | int",
        "s | float",
        "s | bool",
        "s | to_datetime",
        "s | fromjson",
        "s.nope",
        "s + 1",
        "{'a': s}.b",
        "f(s)",
        "s | split('')",
        "s.x()",
        "s > 1",
        "s ** 2",
        "s()",
        "[s][3]",
        "[s] | sum",
        "-s",
        "s is divisibleby(2)",
        "s in 5",
        "[s, 1] | sort",
        "{'a': 1}[s]",
    ],
)
def test_an_error_shows_no_value_as_it_may_be_secret(source: str) -> None:
    def f(value: str) -> None:
        raise ValueError(f"bad value: {value}")

    error = error_of("{{ " + source + " }}", s="hunter2", f=f)
    assert "hunter2" not in f"{error.message} {error.hint}"
    assert error.__suppress_context__


@pytest.mark.parametrize("name", ["null", "nil", "undefined"])
def test_words_of_other_languages_are_recognised(name: str) -> None:
    assert error_of("{{ " + name + " }}").hint == "Write `none`."


def test_an_error_in_a_structure_says_where() -> None:
    error = error_of({"order": {"lines": [1, "{{ nope }}"]}})
    assert error.message == "`order.lines.1` = `{{ nope }}`: `nope` is not defined."
    with pytest.raises(ExpressionError, match=r"^`a\.0` = `{{ x y }}`, line 1, column 6"):
        compile_template({"a": ["{{ x y }}"]})


def test_an_error_of_a_function_of_the_namespace_keeps_its_hint() -> None:
    def inquiry(name: str) -> None:
        raise NotFound(f"No inquiry {name!r}.", hint="List them.")

    error = error_of("{{ inquiry('a') }}", inquiry=inquiry)
    assert error.message == "`{{ inquiry('a') }}`: No inquiry 'a'."
    assert error.hint == "List them."


def test_a_long_expression_is_cut_in_the_message() -> None:
    assert len(error_of("{{ nope }}" + "x" * 5000).message) < 300
