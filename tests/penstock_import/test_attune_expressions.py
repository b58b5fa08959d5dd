"""Expressions of Attune have the values here that its evaluator gives them. The reference below is that evaluator."""

from __future__ import annotations

import json
import operator
import random
from typing import Any

import pytest
from jinja2 import Environment, nodes

from penstock.errors import PenstockError
from penstock.language import expressions
from penstock_import.attune_expressions import AttuneExpressions
from penstock_import.wanted_text import NotMapped

NAMES = {"parameters": "parameters", "workflow": "vars"}
VALUES: list[Any] = [None, True, False, 0, 1, 7, -7, 3, 2.5, -0.5, "", "no", "False", " 0 ", "a", "abc", "12", [], [1, "a"],
                     {}, {"a": 1}]  # fmt: skip


class WrongKind(Exception):
    """An error of the evaluator: an operand of a kind that the operator does not take."""


def is_true(value: Any) -> bool:
    return bool(value)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def are_equal(first: Any, second: Any) -> bool:
    if is_number(first) and is_number(second):
        return float(first) == float(second)
    if type(first) is not type(second):
        return False
    if isinstance(first, list):
        return len(first) == len(second) and all(map(are_equal, first, second))
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(are_equal(first[key], second[key]) for key in first)
    return bool(first == second)


def contains(haystack: Any, needle: Any) -> bool:
    if isinstance(haystack, list):
        return any(are_equal(needle, item) for item in haystack)
    if isinstance(haystack, dict | str) and isinstance(needle, str):
        return needle in haystack
    raise WrongKind


def calculated(kind: str, first: Any, second: Any) -> Any:
    if kind == "Add" and isinstance(first, str | list) and type(first) is type(second):
        return operator.add(first, second)
    if not is_number(first) or not is_number(second):
        raise WrongKind
    both_whole = isinstance(first, int) and isinstance(second, int)
    if kind in ("Div", "Mod") and second == 0:
        raise WrongKind
    if kind == "Div":
        return first // second if both_whole and first % second == 0 else first / second
    if kind == "Mod":  # the sign is that of the first number
        remainder = abs(first) % abs(second)
        return -remainder if first < 0 else remainder
    return {"Add": first + second, "Sub": first - second, "Mul": first * second}[kind]


def compared(op: str, first: Any, second: Any) -> bool:
    if op in ("eq", "ne"):
        return are_equal(first, second) is (op == "eq")
    if op == "in":
        return contains(second, first)
    alike = (is_number(first) and is_number(second)) or (isinstance(first, str) and isinstance(second, str))
    if not alike:
        raise WrongKind
    return bool(
        {"lt": first < second, "lteq": first <= second, "gt": first > second, "gteq": first >= second}[op]
    )


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def function(name: str, args: list[Any]) -> Any:
    value = args[0]
    if name == "length":
        if not isinstance(value, str | list | dict):
            raise WrongKind
        return len(value)
    if name in ("lower", "upper", "trim"):
        if not isinstance(value, str):
            raise WrongKind
        return {"lower": value.lower(), "upper": value.upper(), "trim": value.strip()}[name]
    if name == "string":
        return as_text(value)
    if name == "bool":
        return is_true(value)
    if name == "contains":
        return contains(value, args[1])
    if name == "int":
        if value is None or isinstance(value, list | dict):
            raise WrongKind
        try:
            return int(value) if not isinstance(value, str) else int(float(value))
        except ValueError:
            raise WrongKind from None
    raise AssertionError(name)


def evaluated(node: Any, values: dict[str, Any]) -> Any:
    match node:
        case nodes.Const(value=value):
            return value
        case nodes.Getattr(attr=attr):
            return values[attr]
        case nodes.Neg(node=inner):
            return -evaluated(inner, values)
        case nodes.Not(node=inner):
            return not is_true(evaluated(inner, values))
        case nodes.And(left=left, right=right):
            return is_true(evaluated(left, values)) and is_true(evaluated(right, values))
        case nodes.Or(left=left, right=right):
            return is_true(evaluated(left, values)) or is_true(evaluated(right, values))
        case nodes.Compare(expr=left, ops=[nodes.Operand(op=op, expr=right)]):
            return compared(op, evaluated(left, values), evaluated(right, values))
        case nodes.BinExpr(left=left, right=right):
            return calculated(type(node).__name__, evaluated(left, values), evaluated(right, values))
        case nodes.Call(node=nodes.Name(name=name), args=args):
            return function(name, [evaluated(argument, values) for argument in args])
    raise AssertionError(node)


def random_expression(rng: random.Random, depth: int = 3) -> str:
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(
            ["parameters.a", "parameters.b", "parameters.c", "7", "-7", "2", "'a'", "true", "null"]
        )
    first, second = (random_expression(rng, depth - 1) for _ in range(2))
    form = rng.choice(["{} {} {}"] * 5 + ["not {}", "length({})", "lower({})", "string({})", "bool({})", "int({})",
                                           "contains({}, {})", "trim({})"])  # fmt: skip
    if form == "{} {} {}":
        sign = rng.choice(["+", "-", "*", "/", "%", "==", "!=", "<", ">=", "in", "and", "or"])
        return f"(({first}) {sign} ({second}))"
    return form.replace("{}", "({})").format(first, second)


def theirs_of(text: str, values: dict[str, Any]) -> Any:
    (output,) = Environment(autoescape=False).parse("{{ " + text.replace("null", "none") + " }}").body
    assert isinstance(output, nodes.Output)
    return evaluated(output.nodes[0], values)


def is_same(ours: Any, theirs: Any) -> bool:
    return type(ours) is type(theirs) and (
        abs(ours - theirs) < 1e-9 if isinstance(ours, float) else bool(ours == theirs)
    )


@pytest.mark.parametrize("seed", range(3))
def test_random_expressions_have_the_value_of_attune(seed: int) -> None:
    rng = random.Random(seed)
    compared_count = 0
    for _ in range(400):
        text = random_expression(rng)
        values = {name: rng.choice(VALUES) for name in "abc"}
        try:
            theirs = theirs_of(text, values)
        except WrongKind:
            continue
        try:
            ours = AttuneExpressions(NAMES).template("{{ " + text.replace("null", "none") + " }}")
        except NotMapped:
            continue
        value = expressions.render(ours, {"parameters": values})
        assert is_same(value, theirs), (text, values, ours)
        compared_count += 1
    assert compared_count > 100


@pytest.mark.parametrize("value", VALUES)
def test_value_within_a_text_is_written_as_attune_writes_it(value: Any) -> None:
    ours = AttuneExpressions(NAMES).template("<{{ parameters.a }}>")
    theirs = "" if value is None else as_text(value)
    assert expressions.render(ours, {"parameters": {"a": value}}) == f"<{theirs}>"


@pytest.mark.parametrize("value", VALUES)
def test_condition_in_braces_asks_the_text_of_its_value(value: Any) -> None:
    ours = AttuneExpressions(NAMES).condition("{{ workflow.a }}")
    rendered = "" if value is None else as_text(value)
    holds = rendered.strip().lower() not in ("", "false", "0", "no")
    assert bool(expressions.render("{{ " + ours + " }}", {"vars": {"a": value}})) is holds
    bare = AttuneExpressions(NAMES).condition("workflow.a")
    assert bool(expressions.render("{{ " + bare + " }}", {"vars": {"a": value}})) is is_true(value)


def test_parameter_of_a_rule_renders_paths_alone() -> None:
    mapping = AttuneExpressions({"event.payload": "payload"})
    ours = mapping.paths({"a": "{{ event.payload.x }}", "b": "x: {{ event.payload.x }}"})
    assert expressions.render(ours["a"], {"payload": {}}) is None
    assert expressions.render(ours["b"], {"payload": {}}) == "x: "
    with pytest.raises(NotMapped, match="only paths"):
        mapping.paths("{{ event.payload.x + 1 }}")


def test_error_of_attune_is_an_error_here_where_it_would_match() -> None:
    with pytest.raises(PenstockError):
        expressions.render(
            AttuneExpressions(NAMES).template("{{ lower(parameters.a) }}"), {"parameters": {"a": 5}}
        )
