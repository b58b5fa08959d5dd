"""Expressions with missing, null and unfit values: YAQL or Jinja itself and the translation have the same value, or both fail.
What has a value on one side only is named as a difference, or is not mapped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaql
from jinja2 import Environment, StrictUndefined, Undefined
from yaql.language.exceptions import YaqlException

from penstock.errors import PenstockError
from penstock.language.expressions import compile_template
from penstock_import import jinja_expressions, yaql_expressions
from penstock_import.loose_expressions import loose_parts
from penstock_import.orquesta_names import OrquestaNames
from penstock_import.wanted_text import NotMapped, Ours

VALUES: dict[str, Any] = {"a": 1, "b": "x", "n": None, "t": "12", "l": [1, 2], "d": {"k": 1}}
"""The variables. `z` is never set."""
FAILS = "it fails"
YAQL = (
    "ctx(z)",
    "ctx().z",
    "ctx(d).q",
    "ctx().d.q",
    "int(ctx(b))",
    "int(ctx(n))",
    "ctx(n).k",
    "ctx(n)+1",
    "ctx(n)+'x'",
    "ctx(b)+1",
    "ctx(a)+'x'",
    "ctx(l)[5]",
    "ctx(d)[q]",
    "ctx(d).get(q)",
    "ctx(n).len()",
    "len(ctx(n))",
    "ctx(n).toUpper()",
    "ctx(b).toUpper()",
    "ctx(n)<1",
    "ctx(b)<1",
    "ctx(n)=null",
    "ctx(a)/0",
    "ctx(a) mod 0",
    "float(ctx(b))",
    "str(ctx(n))",
    "ctx(l).first()",
    "[].first()",
    "ctx(n).split(',')",
    "ctx(b).split('')",
    "ctx(l).join(',')",
    "ctx(d).keys()",
    "ctx(n) in ctx(l)",
    "1 in ctx(n)",
    "ctx(b) in 'xyz'",
    "not ctx(n)",
    "ctx(n) and true",
    "ctx(a) or ctx(z)",
    "true or ctx(z)",
    "ctx(z) or true",
    "coalesce(ctx(z),1)",
    "switch(ctx(n) => 1)",
    "ctx(l).select($+1)",
    "ctx(l).where($>1)",
    "ctx(n).where($>1)",
    "-ctx(n)",
    "ctx(b)*2",
    "ctx(l)+ctx(l)",
    "ctx(d)+ctx(d)",
    "ctx(l)-1",
    "bool(ctx(b))",
    "ctx(t)*1",
    "ctx(a)='1'",
    "ctx(n)!=0",
    "ctx(l).len()>0",
    "ctx(b).len()",
    "ctx(d).len()",
    "ctx(b)=~'x'",
    "ctx(b).replace(x,y)",
    "ctx(n)>null",
    "ctx(l).last()",
    "ctx(l).sum()",
    "ctx(d).values()",
    "ctx(b)[0]",
    "ctx(l)[-1]",
    "int('1.5')",
    "int(1.5)",
    "str(true)",
    "str(1.0)",
    "int(true)",
    "ctx(a)>true",
    "ctx(b)>'a'",
    "ctx(l)=ctx(l)",
    "ctx(d).containsKey(k)",
    "ctx(n).get(k)",
    "ctx(l).get(0)",
    "ctx(l).flatten()",
    "ctx(l).distinct()",
    "ctx(l).contains(1)",
    "max(ctx(l))",
    "max(1,2)",
    "ctx(b).trim()",
    "ctx(n).trim()",
    "concat(ctx(b),'y')",
    "ctx(l).reverse()",
    "ctx(l).orderBy($)",
    "range(3)",
    "dict(a=>1)",
    "isString(ctx(b))",
    "isEmpty(ctx(n))",
)
JINJA = (
    "ctx().z",
    "ctx('z')",
    "ctx().d.q",
    "ctx().d['q']",
    "ctx().n.k",
    "ctx().n+1",
    "ctx().b+1",
    "ctx().a~ctx().n",
    "ctx().n|int",
    "ctx().b|int",
    "ctx().t|int",
    "ctx().n|length",
    "ctx().a|length",
    "ctx().b|upper",
    "ctx().n|upper",
    "ctx().a|upper",
    "ctx().z|default('q')",
    "ctx().d.q|default('q')",
    "ctx().n|default('q')",
    "ctx().n|default('q',true)",
    "ctx().l[5]",
    "ctx().l[5]|default(1)",
    "ctx().b.nope",
    "ctx().b.nope|default(3)",
    "ctx().n.k|default(3)",
    "ctx().l|join(',')",
    "ctx().n|join(',')",
    "ctx().n|first",
    "ctx().l|first",
    "[]|first",
    "[]|last",
    "ctx().l|sum",
    "ctx().b<1",
    "ctx().n<1",
    "ctx().a/0",
    "ctx().a//0",
    "1 in ctx().n",
    "'x' in ctx().b",
    "1 in ctx().b",
    "not ctx().z",
    "ctx().z or 1",
    "1 or ctx().z",
    "ctx().z is defined",
    "ctx().d.q is defined",
    "ctx().n is none",
    "ctx().b|float",
    "ctx().n|float",
    "ctx().b.split(',')",
    "ctx().a.split(',')",
    "ctx().n.split(',')",
    "ctx().d.get('q')",
    "ctx().d.get('q').x",
    "ctx().d.keys()|list",
    "ctx().l|map('upper')|list",
    "ctx().b|replace('x','y')",
    "ctx().a|replace('1','y')",
    "ctx().n|replace('N','y')",
    "ctx().b|trim",
    "ctx().n|trim",
    "ctx().a|trim",
    "ctx().n|string",
    "ctx().b*2",
    "ctx().l*2",
    "ctx().d|length",
    "ctx().b|first",
    "ctx().b|list",
    "ctx().n|list",
    "ctx().n|sort",
    "ctx().l|sort",
    "ctx().l|max",
    "[]|max",
    "ctx().n|abs",
    "ctx().b|abs",
    "ctx().b|round",
    "ctx().a|round",
    "ctx().n|lower",
    "ctx().a if ctx().z else 2",
    "ctx().z if ctx().a else 2",
    "ctx().a|bool",
    "ctx().b|title",
    "ctx().a|title",
    "ctx().n|capitalize",
    "ctx().b|reverse",
    "ctx().l|unique|list",
    "ctx().a>'1'",
    "ctx().b==1",
    "ctx().d.k.m",
    "ctx().t|int+1",
    "ctx().l|length>0",
    "ctx().b[0]",
    "ctx().b[5]",
    "ctx().t[0:1]",
    "ctx().n[0]",
    "-ctx().n",
    "-ctx().b",
    "ctx().a.b.c|default('x')",
)


class Context(dict[str, Any]):
    """`ctx()` and `ctx(name)` of Orquesta."""

    def __call__(self, name: str | None = None) -> Any:
        return self if name is None else self[name]


def with_yaql(text: str) -> Any:
    context = yaql.create_context()
    context.register_function(lambda name=None: Context(VALUES)(name), name="ctx")
    try:
        value = yaql.factory.YaqlFactory().create()(text).evaluate(context=context)
        return list(value) if not isinstance(value, str | int | float | list | dict | None) else value
    except (
        YaqlException,
        LookupError,
        TypeError,
        ValueError,
        ArithmeticError,
        AttributeError,
        StopIteration,
    ):
        return FAILS


def with_jinja(text: str) -> Any:
    expression = Environment(undefined=StrictUndefined).compile_expression(text, undefined_to_none=False)
    try:
        value = expression(ctx=Context(VALUES))
        return FAILS if isinstance(value, Undefined) else value
    except Exception:  # whatever a filter of Jinja raises
        return FAILS


def here(text: str, translate: Callable[..., Ours]) -> Any:
    ours = translate(text, OrquestaNames("task", {*VALUES, "z"}))
    try:
        return compile_template(f"{{{{ {ours.text} }}}}")({"context": VALUES, "parameters": {}})
    except PenstockError:
        return FAILS


@pytest.mark.parametrize(
    ("text", "block", "evaluate", "translate"),
    [
        *((text, f"<% {text} %>", with_yaql, yaql_expressions.translate) for text in YAQL),
        *((text, f"{{{{ {text} }}}}", with_jinja, jinja_expressions.translate) for text in JINJA),
    ],
)
def test_value_where_one_may_be_missing(
    text: str, block: str, evaluate: Callable[[str], Any], translate: Callable[..., Ours]
) -> None:
    try:
        ours = here(text, translate)
    except NotMapped:
        return  # a gap at import
    theirs = evaluate(text)
    if (theirs, type(theirs)) != (ours, type(ours)):
        assert theirs == FAILS
        assert list(loose_parts(block)), f"{text} is {ours!r} here"


@pytest.mark.parametrize(
    ("block", "kinds"),
    [
        ("<% ctx(a) > true %>", ["<"]),
        ("<% ctx(l).get(0) %>", ["get"]),
        ("<% ctx().get(x) %>", []),
        ("{{ ctx().a.b | default('x') }}", ["default"]),
        ("{{ trigger.body['a'] | d('x') }}", ["default"]),
        ("{{ ctx().a | default('x') }}", []),
        ("<% ctx(a) = 1 %>{{ not Jinja", []),
    ],
)
def test_kind_of_difference_that_is_named(block: str, kinds: list[str]) -> None:
    assert [kind for kind, _ in loose_parts(block)] == kinds
