"""An expression that was YAQL has the value that the library `yaql` gives it, wherever that gives one."""

from __future__ import annotations

import collections.abc  # noqa: F401 (yaql takes it for granted)
import json
import os
import random
from typing import Any

import pytest
import yaql
from yaql.language import utils

from penstock.language.expressions import compile_template
from penstock_import.orquesta_expressions import template
from penstock_import.orquesta_names import OrquestaNames
from penstock_import.wanted_text import NotMapped

CASES = int(os.environ.get("PENSTOCK_TEST_IMPORT_CASES", "270"))
"""The number of random inputs that are compared."""
pytestmark = pytest.mark.timeout(600 + CASES)
ENGINE = yaql.factory.YaqlFactory().create()
FUNCTIONS = yaql.create_context()
"""The functions of YAQL, which take some 20 ms to make. Each expression has a context of its own below them."""
REFUSED = object()
VARIABLES = ("n", "m", "s", "t", "l", "d", "e", "z", "b", "f", "rows", "words")


def original(text: str, context: dict[str, Any]) -> Any:
    """Return the value of an expression as Orquesta evaluates it."""
    functions = FUNCTIONS.create_child_context()
    values = utils.convert_input_data(context)

    def ctx(key: object = None) -> Any:
        return values if key is None else values[key]

    functions.register_function(ctx, name="ctx")
    return _plain(ENGINE(text).evaluate(context=functions))


def _plain(value: Any) -> Any:
    if isinstance(value, dict | utils.MappingType):
        return {key: _plain(value[key]) for key in value}
    if isinstance(value, str) or value is None or isinstance(value, bool | int | float):
        return value
    return set(value) if isinstance(value, set) else [_plain(item) for item in value]


def same(entry: Any, two: Any) -> bool:
    """Return whether two values are equal. A set of YAQL, such as that of `keys()`, is a list in any order."""
    if isinstance(entry, list) and isinstance(two, set):
        return len(entry) == len(two) and set(entry) == two
    if isinstance(entry, list) and isinstance(two, list):
        return len(entry) == len(two) and all(map(same, entry, two))
    if isinstance(entry, dict) and isinstance(two, dict):
        return entry.keys() == two.keys() and all(same(entry[key], two[key]) for key in entry)
    return type(entry) is type(two) and entry == two


def value_of(ours: Any, context: dict[str, Any]) -> Any:
    """Return the value of what was made; REFUSED for the text of a list or a mapping, which is refused."""
    try:
        return json.loads(json.dumps(compile_template(ours)({"context": context})))
    except Exception as error:
        return REFUSED if "this_is_no_text" in str(error) else error


def context_of(rng: random.Random) -> dict[str, Any]:
    return {
        "n": rng.choice([0, 1, 3, 7, -2]),
        "m": rng.choice([2, 5, -3]),
        "s": rng.choice(["", "a", "Ab c", " x "]),
        "t": rng.choice(["b", "3", "true"]),
        "l": [rng.randrange(4) for _ in range(rng.randrange(4))],
        "d": {"k": rng.randrange(3), "items": 5, "w": "x", "get": None},
        "e": {},
        "z": None,
        "b": rng.choice([True, False]),
        "f": rng.choice([1.5, 2.0, -0.25]),
        "rows": [
            {"k": rng.randrange(3), "v": rng.choice("pq"), "o": {"i": 1}} for _ in range(rng.randrange(4))
        ],
        "words": rng.sample(["pen", "Ink", "a b"], rng.randrange(4)),
    }


def written(rng: random.Random, depth: int) -> str:
    name = rng.choice(VARIABLES)
    if depth <= 0 or rng.random() < 0.2:
        number, text = str(rng.randrange(5)), rng.choice(["'a'", "'pen'", "''", "'3'"])
        atoms = [f"ctx().{name}", f"ctx({name})", f"ctx('{name}')", number, text, "null", "true", "2.5"]
        return rng.choice([*atoms, "ctx().d.k", "ctx().d.items", "ctx().rows[0].k"])
    entry, two = written(rng, depth - 1), written(rng, depth - 1)
    operator = rng.choice(["+", "-", "*", "/", "mod", "=", "!=", "<", "<=", ">", ">=", "and", "or", "in"])
    of_rows = rng.choice(
        [
            "select($.k)",
            "select([$.k, $.v])",
            "where($.k = 1)",
            "where($.v != p)",
            "where(not $.k)",
            "where($.k in [0, 2])",
        ]
    )
    bare = rng.choice(
        ["len", "keys", "values", "first", "last", "toLower", "toUpper", "trim", "any", "count", "flatten"]
    )
    taking = rng.choice(
        ["get(k)", "get(zz, 4)", "containsKey(k)", "append(3)", "startsWith(a)", "split(b)", "replace(a, z)"]
    )
    return rng.choice(
        [
            f"({entry} {operator} {two})",
            f"({entry} {operator} {two})",
            f"not {entry}",
            f"{entry}.{bare}()",
            f"{entry}.{taking}",
            f"{rng.choice(['len', 'str', 'int', 'float', 'bool', 'isString'])}({entry})",
            f"ctx().rows.{of_rows}",
            "ctx().words.join(',')",
            f"switch({entry} => {two}, true => 1)",
            f"coalesce({entry}, {two})",
            f"[{entry}, {two}]",
            f"{entry}[{rng.choice(['0', 'k', '-1', 'ctx(n)'])}]",
        ]
    )


@pytest.mark.parametrize("seed", range(3))
def test_random_expressions_have_their_value_in_yaql(seed: int) -> None:
    rng = random.Random(seed)
    compared = 0
    for _ in range(CASES // 3):
        text = written(rng, 3)
        try:
            ours = template(f"<% {text} %>", OrquestaNames("task", VARIABLES))
        except NotMapped:
            continue
        context = context_of(rng)
        try:
            expected = original(text, context)
        except Exception:
            continue  # the workflow fails there
        value = value_of(ours, context)
        if value is REFUSED:
            continue
        assert same(value, expected), (text, ours, context, expected, value)
        compared += 1
    assert compared > 15


@pytest.mark.parametrize(
    ("text", "context", "expected"),
    [
        ("ctx().n / 2", {"n": 7}, 3),
        ("ctx().n / 2", {"n": 7.0}, 3.5),
        ("ctx().z > 3", {"z": None}, False),
        ("ctx().z < 3", {"z": None}, True),
        ("ctx().d.items", {"d": {"items": 5}}, 5),
        ("ctx().s = 'null pointer'", {"s": "null pointer"}, True),
        ("ctx().s = 'ctx().n = 1'", {"s": "ctx().n = 1"}, True),
        ("str(ctx().b)", {"b": True}, "true"),
        ("ctx().l.flatten()", {"l": [[1, [2]], [[3]], 4]}, [1, 2, 3, 4]),
        ("ctx().s.isEmpty()", {"s": ""}, True),
        ("isEmpty(ctx().z)", {"z": None}, True),
        ("isEmpty(ctx().s)", {"s": "a"}, False),
        ("ctx().a + ctx().c", {"a": {"x": 1}, "c": {"y": 2}}, {"x": 1, "y": 2}),
    ],
)
def test_expression_keeps_its_meaning(text: str, context: dict[str, Any], expected: Any) -> None:
    ours = template(f"<% {text} %>", OrquestaNames("task", context.keys()))
    assert same(original(text, context), expected)
    assert same(compile_template(ours)({"context": context}), expected)


@pytest.mark.parametrize("rows", [[{"a": 1, "b": "x"}, {"a": 2, "b": [3]}], []])
@pytest.mark.parametrize("select", ["[$.a, $.b]", "[$]", "[$.b]", "[[$.a, $.b], $]"])
def test_select_of_a_list_has_its_value_in_yaql(rows: list[Any], select: str) -> None:
    text = f"ctx().rows.select({select})"
    ours = template(f"<% {text} %>", OrquestaNames("task", VARIABLES))
    assert value_of(ours, {"rows": rows}) == original(text, {"rows": rows})


def test_select_of_a_list_fails_for_a_missing_member() -> None:
    ours = template("<% ctx().rows.select([$.a, $.b]) %>", OrquestaNames("task", VARIABLES))
    with pytest.raises(KeyError):
        original("ctx().rows.select([$.a, $.b])", {"rows": [{"a": 1}]})
    assert isinstance(value_of(ours, {"rows": [{"a": 1}]}), Exception)


@pytest.mark.parametrize("select", ["{x => $.a}", "dict(x => $.a)", "[$.a, 1]", "[$x]"])
def test_select_of_more_than_members_is_refused(select: str) -> None:
    with pytest.raises(NotMapped, match="select"):
        template(f"<% ctx().rows.select({select}) %>", OrquestaNames("task", VARIABLES))
