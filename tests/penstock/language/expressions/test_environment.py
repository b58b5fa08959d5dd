"""Ways out of Jinja's sandbox that were found over the years, and some of our own: none works."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.language.expressions import ExpressionError, condition, render


@dataclass
class Thing:
    secret: str = "s3cret"

    def leak(self) -> str:
        return self.secret


def now() -> int:
    return 1


NAMESPACE: dict[str, Any] = {
    "d": {"a": 1},
    "l": [1, 2],
    "s": "text",
    "thing": Thing(),
    "now": now,
    "T": Thing,
}


@pytest.mark.parametrize(
    "template",
    [
        # to the class of a value, and from there to everything
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ ()['__class__'] }}",
        "{{ ().__class__ }}",
        "{{ s['__class__'] }}",
        "{{ s['__cla' ~ 'ss__'] }}",
        "{{ d.get.__self__ }}",
        "{{ d.get['__self__'] }}",
        "{{ d.get.func }}",
        "{{ s.upper.func }}",
        "{{ s.upper.args }}",
        "{{ 1 .real }}",
        "{{ thing.secret }}",
        "{{ thing['secret'] }}",
        "{{ thing.leak() }}",
        "{{ T.leak }}",
        "{{ T().secret }}",
        "{{ now.__globals__ }}",
        "{{ now['__globals__'] }}",
        "{{ now.__code__ }}",
        "{{ now.__init__ }}",
        "{{ range.__wrapped__ }}",
        "{{ range.__globals__ }}",
        "{{ nope.__class__ }}",
        "{{ (nope | default(now)).__globals__ }}",
        # filters that reach attributes
        "{{ s | attr('__class__') }}",
        "{{ [s] | map('attr', '__class__') }}",
        "{{ [s] | map(attribute='__class__') }}",
        "{{ [now] | map(attribute='__globals__') | first }}",
        "{{ [thing] | map(attribute='secret') }}",
        "{{ [thing] | selectattr('secret') }}",
        "{{ [thing] | sum(attribute='secret') }}",
        "{{ [thing] | join(attribute='secret') }}",
        "{{ [thing] | groupby('__class__') }}",
        "{{ [thing, thing] | sort(attribute='__class__.__name__') }}",
        "{{ [thing, thing] | max(attribute='secret') }}",
        "{{ {'a': 1} | xmlattr }}",
        # str.format and its kin (CVE-2016-10745, CVE-2019-10906, CVE-2024-56326, CVE-2025-27516)
        "{{ '{0.__class__}'.format(1) }}",
        "{{ '{a.__class__}'.format_map(d) }}",
        "{{ ('{0.__class__}' | attr('format'))(1) }}",
        "{{ ['{0.__class__}'] | map('format', 1) }}",
        "{{ '{0.__class__}' | format(1) }}",
        "{{ s['format'] }}",
        "{% set f = '{0.__class__}'.format %}{{ f(1) }}",
        "{{ '%(a)s' % d }}",
        "{{ s.encode() }}",
        "{{ s.translate({}) }}",
        # what Jinja itself brings along
        "{{ self }}",
        "{{ self.__init__ }}",
        "{{ self._TemplateReference__context }}",
        "{{ super() }}",
        "{{ caller }}",
        "{{ varargs }}",
        "{{ kwargs }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ joiner() }}",
        "{{ namespace() }}",
        "{{ lipsum.__globals__ }}",
        "{{ dict(a=1) }}",
        "{{ config }}",
        "{{ environment }}",
        "{{ context }}",
        "{{ __builtins__ }}",
        "{{ __name__ }}",
        "{% for x in l %}{{ loop.__class__ }}{% endfor %}",
        "{% for x in l %}{{ loop._context }}{% endfor %}",
        "{% for x in l %}{{ loop(l) }}{% endfor %}",
        "{% for x in l %}{{ loop['__class__'] }}{% endfor %}",
        "{% for x in l %}{{ loop }}{% endfor %}|{{ loop }}",
        "{% set self = 1 %}{{ self }}",
        "{% set __builtins__ = 1 %}",
        # changing what it was given
        "{{ l.append(3) }}",
        "{{ l.pop() }}",
        "{{ d.update({'b': 1}) }}",
        "{{ d.pop('a') }}",
        "{{ d.clear() }}",
        "{{ d.setdefault('b', 1) }}",
        "{% set d.b = 1 %}",
        # files, other templates, code
        "{% include '/etc/passwd' %}",
        "{% import 'os' as os %}{{ os }}",
        "{% from 'os' import system %}",
        "{% extends 'x' %}",
        "{% block x %}{% endblock %}",
        "{% macro m() %}{% endmacro %}{{ m.__globals__ }}",
        "{% call x() %}{% endcall %}",
        "{% filter upper %}x{% endfilter %}",
        "{% autoescape true %}{% endautoescape %}",
        "{% with x = 1 %}{% endwith %}",
        "{% do l.append(1) %}",
        "{{ open('/etc/passwd') }}",
        "{{ eval('1') }}",
        "{{ getattr(s, '__class__') }}",
        "{{ now(_loop_vars={'a': 1}, x=now.__globals__) }}",
        "{{ l | random }}",
        "{{ s | pprint }}",
    ],
)  # fmt: skip
def test_there_is_no_way_out(template: str) -> None:
    before = repr(NAMESPACE)
    with pytest.raises(ExpressionError) as caught:
        render(template, NAMESPACE)
    assert "s3cret" not in str(caught.value)
    assert repr(NAMESPACE) == before


@pytest.mark.parametrize(
    "source", ["''.__class__", "now.__globals__", "d.update({})", "self", "s | attr('x')"]
)
def test_nor_from_a_condition(source: str) -> None:
    with pytest.raises(ExpressionError):
        condition(source)(NAMESPACE)


def test_a_function_that_is_marked_unsafe_is_not_called() -> None:
    def wipe() -> None:
        raise AssertionError("called")

    wipe.unsafe_callable = True  # type: ignore[attr-defined]
    with pytest.raises(ExpressionError, match="may not be called"):
        render("{{ wipe() }}", {"wipe": wipe})


def test_data_may_have_keys_that_look_dangerous() -> None:
    assert render("{{ d['__class__'] }}{{ d._id }}", {"d": {"__class__": "mine", "_id": 1}}) == "mine1"


WORDS = (
    "d l s now thing nope a 1 2 0.5 'x' '{0}' none true ( ) [ ] { } , : . | ~ + - * / // % ** == != < > in not "
    "is and or if else default join map select sort unique tojson length upper range attr __class__ format get "
    "items join( range( map( [ ['a'] [0] [::2] {{ }} {% %} for set endfor endif x = loop"
)
words = st.sampled_from(WORDS.split())


@settings(max_examples=500)
@given(st.lists(words, max_size=14).map(" ".join))
def test_any_text_gives_a_value_or_an_expression_error(source: str) -> None:
    for template in (source, "{{ " + source + " }}", "{% for x in " + source + " %}{{ x }}{% endfor %}"):
        try:
            result = render(template, NAMESPACE)
        except ExpressionError:
            continue
        assert "__subclasses__" not in repr(result)
    with suppress(ExpressionError):
        assert condition(source)(NAMESPACE) in (True, False)
