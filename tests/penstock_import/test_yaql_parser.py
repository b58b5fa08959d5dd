"""The parser of YAQL reads what the library `yaql` reads, into the same tree."""

from __future__ import annotations

import collections.abc  # noqa: F401 (yaql takes it for granted)
import random

import pytest
import yaql
from yaql.language import expressions as theirs

from penstock_import import yaql_parser as ours

ENGINE = yaql.factory.YaqlFactory().create()
WORDS = (
    *(
        "ctx(",
        "f(",
        ")",
        ")",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ".",
        ".",
        ".",
        "+",
        "-",
        "*",
        "/",
        "mod",
        "=",
        "!=",
        "<",
    ),
    *(
        ">=",
        "in",
        "not",
        "and",
        "or",
        "=~",
        "->",
        "=>",
        "$",
        "$x",
        "a",
        "b",
        "'q'",
        "1",
        "2.5",
        "true",
        "null",
        "`v`",
    ),
)


def shape_of_theirs(node: object) -> tuple[object, ...]:
    if isinstance(node, theirs.Statement):
        return shape_of_theirs(node.expression)
    if isinstance(node, theirs.KeywordConstant):
        return ("word", node.value)
    if isinstance(node, theirs.Constant):
        return ("const", repr(node.value))
    if isinstance(node, theirs.Wrap):
        return shape_of_theirs(node.expr)
    if isinstance(node, theirs.GetContextValue):
        return ("variable", node.path.value)
    if isinstance(node, theirs.MappingRuleExpression):
        return ("pair", shape_of_theirs(node.source), shape_of_theirs(node.destination))
    kinds = {"BinaryOperator": "binary", "UnaryOperator": "unary"}
    if type(node).__name__ in kinds:
        return (kinds[type(node).__name__], node.operator, *map(shape_of_theirs, node.args))  # type: ignore[attr-defined]
    names = {"IndexExpression": "index", "ListExpression": "list", "MapExpression": "map"}
    if type(node).__name__ in names:
        return (names[type(node).__name__], *map(shape_of_theirs, node.args))  # type: ignore[attr-defined]
    assert isinstance(node, theirs.Function)
    return ("call", node.name, *map(shape_of_theirs, node.args))


def shape_of_ours(node: ours.Expr) -> tuple[object, ...]:
    match node:
        case ours.Const(value):
            return ("const", repr(value))
        case ours.Word(name):
            return ("word", name)
        case ours.Variable(name):
            return ("variable", name)
        case ours.Call(name, arguments, pairs):
            return ("call", name, *map(shape_of_ours, arguments), *map(shape_of_pair, pairs))
        case ours.Unary(operator, operand):
            return ("unary", operator, shape_of_ours(operand))
        case ours.Binary(operator, left, right):
            return ("binary", operator, shape_of_ours(left), shape_of_ours(right))
        case ours.Index(value, arguments):
            return ("index", shape_of_ours(value), *map(shape_of_ours, arguments))
        case ours.ListOf(items):
            return ("list", *map(shape_of_ours, items))
        case ours.MapOf(pairs):
            return ("map", *map(shape_of_pair, pairs))


def shape_of_pair(pair: tuple[ours.Expr, ours.Expr]) -> tuple[object, ...]:
    return ("pair", shape_of_ours(pair[0]), shape_of_ours(pair[1]))


def written(rng: random.Random, depth: int) -> str:
    if depth <= 0 or rng.random() < 0.25:
        return rng.choice(
            ["a", "'q'", "1", "2.5", "$", "$.a", "true", "null", "ctx()", "ctx().b", "ctx(a)", "result()"]
        )
    inner = [written(rng, depth - 1) for _ in range(2)]
    operator = rng.choice(["+", "-", "*", "/", "mod", "=", "!=", "<", ">=", "in", "and", "or", "->", "=~"])
    method = rng.choice(["a", "len()", "get(a)", "where($.a = 1)", "f(x => 2)"])
    return rng.choice(
        [
            f"{inner[0]} {operator} {inner[1]}",
            f"{inner[0]} {operator} {inner[1]}",
            f"not {inner[0]}",
            f"-{inner[0]}",
            f"({inner[0]})",
            f"{inner[0]}.{method}",
            f"{inner[0]}[{inner[1]}]",
            f"[{inner[0]}, {inner[1]}]",
            f"{{{inner[0]} => {inner[1]}}}",
        ]
    )


@pytest.mark.parametrize("seed", range(2))
def test_parser_reads_the_same_tree_as_yaql(seed: int) -> None:
    rng = random.Random(seed)
    both = 0
    for number in range(120):
        text = (
            written(rng, 4) if number % 2 else " ".join(rng.choice(WORDS) for _ in range(rng.randrange(1, 9)))
        )
        try:
            expected = shape_of_theirs(ENGINE(text))
        except Exception:
            expected = None
        try:
            parsed = shape_of_ours(ours.parse(text))
        except ours.YaqlSyntaxError:
            parsed = None
        assert parsed == expected or (parsed is None and "?." in text), text
        both += expected is not None
    assert both > 40
