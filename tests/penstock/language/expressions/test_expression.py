"""The values that expressions and templates give."""

from __future__ import annotations

from collections import UserDict
from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.language.expressions import ExpressionError, compile_template, expression, render

NAMESPACE: dict[str, Any] = {
    "parameters": {
        "customer": {"id": 7, "name": "Ann", "items": [1, 2], "keys": "mine"},
        "tags": ["vip", "new"],
        "count": "12",
        "yes": True,
        "nothing": None,
        "rows": [{"id": 1, "city": "Rome"}, {"id": 2, "city": "Oslo"}, {"id": 3, "city": "Rome"}],
    },
    "index": 0,
    "now": lambda: datetime(2026, 3, 1, 9, tzinfo=UTC),
}

json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("template", "value"),
    [
        # a lone expression keeps the type of its value
        ("{{ parameters.customer.id }}", 7),
        ("{{ parameters.count }}", "12"),
        ("{{ parameters.yes }}", True),
        ("{{ parameters.nothing }}", None),
        ("{{ parameters.customer }}", NAMESPACE["parameters"]["customer"]),
        ("{{ 1 }}", 1),
        ("{{ '1' }}", "1"),
        ("{{ '[1, 2]' }}", "[1, 2]"),
        ("{{ none }}", None),
        ("{{parameters.customer.id}}\n", 7),
        ("{{\n  parameters.customer.id\n}}", 7),
        # anything beside it makes text
        (" {{ parameters.customer.id }}", " 7"),
        ("{{ 1 }}{{ 2 }}", "12"),
        ("Order {{ parameters.customer.id }}: {{ parameters.customer.name }}\n", "Order 7: Ann\n"),
        ("{{ parameters.yes }} {{ parameters.nothing }} {{ [1, 'a'] }}", "True None [1, 'a']"),
        ("{% if index %}yes{% else %}no{% endif %}", "no"),
        ("{% for tag in parameters.tags %}{{ loop.index }}={{ tag }};{% endfor %}", "1=vip;2=new;"),
        ("{% for k, v in {'a': 1}.items() %}{{ k }}{{ v }}{% endfor %}", "a1"),
        ("{% for x in [] %}x{% else %}none{% endfor %}", "none"),
        ("{% for x in [1, 2, 3] if x is odd %}{{ x }}{% endfor %}", "13"),
        ("{% set x = 20 %}{{ x + 1 }}", "21"),
        ("{% raw %}{{ x }}{% endraw %}", "{{ x }}"),
        ("a{# not shown #}b", "ab"),
        ("no braces", "no braces"),
        ("", ""),
        # a key wins over a method of the same name; other methods are there
        ("{{ parameters.customer.items }}", [1, 2]),
        ("{{ parameters.customer.keys }}", "mine"),
        ("{{ parameters.customer['items'][1] }}", 2),
        ("{{ parameters.customer.get('id') }}", 7),
        ("{{ parameters.customer.get('nope', 5) }}", 5),
        ("{{ {'a': 1}.items() }}", [("a", 1)]),
        ("{{ parameters.customer.name.upper() }}", "ANN"),
        ("{{ ', '.join(parameters.tags) }}", "vip, new"),
        ("{{ parameters.customer.name.replace('n', 'm') }}", "Amm"),
        ("{{ parameters.tags[-1] }}", "new"),
        ("{{ 'abcd'[1:3] }}{{ [1, 2, 3][::-1] }}", "bc[3, 2, 1]"),
        # operators
        ("{{ 2 ** 10 + 7 % 4 - 1 }}", 1026),
        ("{{ 7 // 2 }}", 3),
        ("{{ 7 / 2 }}", 3.5),
        ("{{ -3 + +1 }}", -2),
        ("{{ 'a' + 'b' }}", "ab"),
        ("{{ 'a' ~ 1 ~ none }}", "a1None"),
        ("{{ [1] + [2] }}", [1, 2]),
        ("{{ 'ab' * 2 }}", "abab"),
        ("{{ 2 * [0] }}", [0, 0]),
        ("{{ 1 < 2 < 3 }}", True),
        ("{{ 1 < 2 > 3 }}", False),
        ("{{ 'vip' in parameters.tags and 'x' not in parameters.tags }}", True),
        ("{{ 'id' in parameters.customer }}", True),
        ("{{ 'nn' in parameters.customer.name }}", True),
        ("{{ [1, 2] == [1, 2] and (1, 2) != (1, 3) }}", True),
        ("{{ 'a' if index == 0 else 'b' }}", "a"),
        ("{{ {'a' ~ index: 1} }}", {"a0": 1}),
        # helpers
        ("{{ nope | default(3) }}", 3),
        ("{{ parameters.nope.deeper[0].still | d('x') }}", "x"),
        ("{{ parameters.nope is defined }}{{ parameters.count is undefined }}", "FalseFalse"),
        ("{{ parameters.count | int + 1 }}", 13),
        ("{{ int(' 12 ') }}", 12),
        ("{{ 'x' | int(0) }}", 0),
        ("{{ '1.5' | float }}", 1.5),
        ("{{ ['true', 'No', '1', true] | map('bool') }}", [True, False, True, True]),
        ("{{ 2.345 | round(2) }}", 2.35),
        ("{{ len(parameters.tags) }}", 2),
        ("{{ parameters.tags | length }}", 2),
        ("{{ min(3, 2) + max([1, 5]) + sum([1, 2]) }}", 10),
        ("{{ parameters.rows | sum(attribute='id') }}", 6),
        ("{{ parameters.rows | map(attribute='id') }}", [1, 2, 3]),
        ("{{ parameters.rows | map(attribute='id') | select('gt', 1) }}", [2, 3]),
        ("{{ parameters.rows | selectattr('city', 'eq', 'Oslo') | map(attribute='id') }}", [2]),
        ("{{ parameters.rows | rejectattr('city', 'in', ['Oslo']) | length }}", 2),
        ("{{ parameters.rows | sort(attribute='city') | map(attribute='id') }}", [2, 1, 3]),
        ("{{ parameters.rows | map(attribute='city') | unique }}", ["Rome", "Oslo"]),
        ("{% for city, rows in parameters.rows | groupby('city') %}{{ city }}{{ rows | length }}{% endfor %}",
         "Oslo1Rome2"),
        ("{{ sorted([3, 1, 2], reverse=true) }}", [3, 2, 1]),
        ("{{ ['b', 'a'] | sort | first }}{{ [1, 2] | last }}", "a2"),
        ("{{ range(3) }}", [0, 1, 2]),
        ("{{ [1, 2] | reverse }}", [2, 1]),
        ("{{ [[1, 2], 3] | flatten }}", [1, 2, 3]),
        ("{{ {'a': 1} | combine({'b': 2}, {'a': 3}) }}", {"a": 3, "b": 2}),
        ("{{ {'a': {'b': 1}} | combine({'a': {'c': 2}}) }}", {"a": {"c": 2}}),
        ("{{ {'a': {'b': 1}, 'd': 1} | combine({'a': {'c': 2}}, recursive=true) }}", {"a": {"b": 1, "c": 2}, "d": 1}),
        ("{{ {'a': {'b': 1}} | combine({'a': none}, {'a': {'c': 2}}, recursive=true) }}", {"a": {"c": 2}}),
        ("{{ zip([1, 2], ['a', 'b']) }}", [(1, "a"), (2, "b")]),
        ("{{ {'b': 1, 'a': 2} | dictsort }}", [("a", 2), ("b", 1)]),
        ("{{ {'a': [1, none]} | tojson }}", '{"a":[1,null]}'),
        ("{{ '[1, {\"a\": 2}]' | fromjson }}", [1, {"a": 2}]),
        ("{{ parameters.rows | map(attribute='city') | join(', ') }}", "Rome, Oslo, Rome"),
        ("{{ parameters.rows | join('-', attribute='id') }}", "1-2-3"),
        ("{{ 'a,b' | split(',') }}", ["a", "b"]),
        ("{{ ' x ' | trim | upper | string }}", "X"),
        ("{{ now().year }}", 2026),
        ("{{ (now() + duration(hours=2)).isoformat() }}", "2026-03-01T11:00:00+00:00"),
        ("{{ to_datetime('2026-03-01T10:00:00+01:00') == now() }}", True),
        ("{{ to_datetime('2026-03-01') < now() }}", True),
        ("{{ to_datetime(0).year }}", 1970),
        ("{{ '2026-03-01' | to_date }}", date(2026, 3, 1)),
        ("{{ (now() - to_datetime('2026-03-01T08:00')).total_seconds() }}", 3600.0),
        ("{{ [now()] | map(attribute='year') }}", [2026]),
        ("{{ 'abc' is startswith('a') and 'abc' is contains('b') }}", True),
    ],
)  # fmt: skip
def test_a_template_gives(template: str, value: Any) -> None:
    result = render(template, NAMESPACE)
    assert result == value
    assert type(result) is type(value)


def test_a_structure_is_walked_and_constants_stand_for_themselves() -> None:
    stamp = date(2026, 1, 1)
    template = {
        "id": "{{ parameters.customer.id }}",
        "list": [1, "{{ parameters.tags }}", {"deep": "{{ 1 + 1 }}", "plain": [1]}, (2, 3)],
        "{{ parameters.customer.name }}": None,
        "stamp": stamp,
        3: True,
    }
    assert render(template, NAMESPACE) == {
        "id": 7,
        "list": [1, ["vip", "new"], {"deep": 2, "plain": [1]}, [2, 3]],
        "Ann": None,
        "stamp": stamp,
        3: True,
    }


@pytest.mark.parametrize(
    "template", [{"a": 1, "b": "x"}, {"a": {"b": [1]}}, [1, [2]], [1, 2], {"a": "{{ 1 }}", "b": {"c": []}}]
)
def test_a_rendered_value_is_changed_without_harm_to_its_template(template: Any) -> None:
    compiled = compile_template(template)

    def spoil(value: Any) -> None:
        for inner in list(value.values() if isinstance(value, dict) else value):
            if isinstance(inner, (dict, list)):
                spoil(inner)
        value.clear()

    first = compiled({})
    expected = repr(first)
    spoil(first)
    assert repr(compiled({})) == expected


@given(json)
def test_a_lone_name_gives_any_value_back_unchanged(value: Any) -> None:
    result = render("{{ x }}", {"x": value})
    assert result == value
    assert type(result) is type(value)


@given(json)
def test_a_structure_without_braces_is_itself(value: Any) -> None:
    has_braces = any(mark in repr(value) for mark in ("{{", "{%", "{#"))
    if not has_braces:
        assert render(value, {}) == value


@given(st.text(), st.text())
def test_text_around_an_expression_stays_as_it_is(before: str, after: str) -> None:
    before, after = (text.replace("{", "(").replace("\r", "") for text in (before, after))
    assert render(f"{before}{{{{ x }}}}{after}!", {"x": "X"}) == f"{before}X{after}!"


def test_any_mapping_will_do_as_a_namespace_and_below() -> None:
    assert render("{{ a.b.c }}", UserDict({"a": UserDict({"b": {"c": 1}})})) == 1


def test_a_name_of_the_namespace_hides_a_function() -> None:
    assert render("{{ range }}", {"range": 5}) == 5


def test_an_expression_is_compiled_once() -> None:
    assert expression("{{ a + 1 }}") is expression("{{ a + 1 }}")


def test_two_keys_that_come_out_the_same_are_refused() -> None:
    with pytest.raises(ExpressionError, match=r"Two keys .* 'a'"):
        render({"a": 1, "{{ x }}": 2}, {"x": "a"})


def test_a_key_that_is_no_text_is_refused() -> None:
    with pytest.raises(ExpressionError, match=r"in `k\.{{ x }}`|has the type int, and must be text"):
        render({"{{ x }}": 2}, {"x": 1})


def test_large_values_pass_through_at_no_cost() -> None:
    rows = [{"id": n} for n in range(300_000)]
    assert render({"rows": "{{ a.rows }}", "first": "{{ a.rows[0].id }}"}, {"a": {"rows": rows}}) == {
        "rows": rows,
        "first": 0,
    }


def test_rendering_inside_a_function_of_the_namespace_has_a_budget_of_its_own() -> None:
    costly = "{% for i in range(20000) %}{% set x = i %}{% endfor %}"
    again = costly * 2 + "{{ inner() }}" * 3
    assert render(again, {"inner": lambda: render(costly, {})}) == ""
