"""The kinds of expressions that have no value in StackStorm for some inputs, but have one in Penstock."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from jinja2 import Environment, nodes
from jinja2.exceptions import TemplateSyntaxError

from penstock_import import yaql_parser as tree

_BLOCK = re.compile(r"<%(.*?)%>|\{\{(.*?)\}\}", re.DOTALL)
_JINJA = Environment()
LOOSE: Mapping[str, str] = {
    "in": "`in` with a mapping, which fails in StackStorm and looks for a key in Penstock",
    "+": "a sum with a truth value, which fails in StackStorm and counts as 1 or 0 in Penstock",
    "<": "a comparison with a truth value, which fails in StackStorm and counts as 1 or 0 in Penstock",
    "get": "`get` of a list or a text, which fails in StackStorm and is null or the default in Penstock",
    "default": "`default` after a member of a possibly missing value, which fails in StackStorm and gives the default in "
    "Penstock",
    "tuple": "a tuple, whose text has parentheses in StackStorm and brackets in Penstock",
    "float": "`float` of a text such as `inf` or `nan`, which is that number in StackStorm and 0.0 in Penstock",
    "sign": "a sign or `abs` of a truth value, which fails in StackStorm and counts as 1 or 0 in Penstock",
    "list": "a method of lists or mappings, which fails in StackStorm for another type and may give a value in Penstock",
    "json": "JSON that is parsed from a mapping or a number, which fails in StackStorm and gives the value in Penstock",
    "index": "an index of a text, which fails in StackStorm and gives a letter in Penstock",
    "member": "a member of a list, which is a list of the items' members in StackStorm, and fails in Penstock unless the list "
    "is certain",
}
"""The difference between StackStorm and Penstock, by kind of expression."""

_OF_JSON = frozenset({"json", "from_json_string", "json_parse"})
_OF_LISTS = frozenset(
    {
        *("any", "contains", "containsKey", "count", "first", "flatten", "items", "join", "keys", "last"),
        *("reverse", "select", "set", "toList", "values", "where"),
    }
)


def loose_parts(text: str) -> Iterator[tuple[str, int]]:
    """Yield the kinds of such expressions in a file, each with its line."""
    for block in _BLOCK.finditer(text):
        try:
            kinds = _jinja_kinds(block[2]) if block[1] is None else _kinds(tree.parse(block[1]))
            line = text.count("\n", 0, block.start()) + 1
            for kind in sorted(set(kinds)):
                yield kind, line
        except (tree.YaqlSyntaxError, TemplateSyntaxError):
            continue


def _jinja_kinds(text: str) -> Iterator[str]:
    parsed = _JINJA.parse("{{" + text + "}}")
    for node in parsed.find_all(nodes.Filter):
        if node.name in ("default", "d") and _depth(node.node) > 1:
            yield "default"
        elif node.name in _OF_JSON:
            yield "json"
        elif node.name == "float":
            yield "float"
    if any(node.ctx == "load" for node in parsed.find_all(nodes.Tuple)):
        yield "tuple"
    for call in parsed.find_all(nodes.Call):
        if isinstance(call.node, nodes.Getattr) and call.node.attr in ("get", "keys", "values", "items"):
            yield "list"


def _depth(node: nodes.Node | None) -> int:
    """Return the number of members in a chain such as `name.a.b` or `call().a`. A key of the store has none, as
    StackStorm reads a missing key as an empty text."""
    depth = 0
    while isinstance(node, nodes.Getattr | nodes.Getitem):
        depth += 1
        node = node.node
    return 0 if isinstance(node, nodes.Name) and node.name == "st2kv" else depth


def _kinds(node: tree.Expr) -> Iterator[str]:
    match node:
        case tree.Binary("in", _, second) if not isinstance(second, tree.ListOf | tree.Const):
            yield "in"
        case tree.Binary("+" | "-" | "*" | "/" | "mod", first, second) if not _is_text(
            first
        ) and not _is_text(second):
            yield "+"
        case tree.Binary("<" | ">" | "<=" | ">=", first, second) if not _is_text(first) and not _is_text(
            second
        ):
            yield "<"
        case tree.Binary("." | "?.", first, tree.Call("get")) if first != tree.Call("ctx"):
            yield "get"
        case tree.Binary("." | "?.", first, tree.Call(name)) if name in _OF_LISTS:
            if not isinstance(first, tree.ListOf):
                yield "list"
        case tree.Unary("-" | "+", operand) if not isinstance(operand, tree.Const):
            yield "sign"
        case tree.Call("abs"):
            yield "sign"
        case tree.Call(name) if name in _OF_JSON:
            yield "json"
        case tree.Index():
            yield "index"
        case tree.Binary("." | "?.", first, tree.Word()) if not isinstance(first, tree.Call | tree.Variable):
            yield "member"
    for child in _children(node):
        yield from _kinds(child)


def _is_text(node: tree.Expr) -> bool:
    return isinstance(node, tree.Const) and isinstance(node.value, str)


def _children(node: tree.Expr) -> Iterator[tree.Expr]:
    match node:
        case tree.Unary(_, operand):
            yield operand
        case tree.Binary(_, first, second):
            yield first
            yield second
        case tree.Index(value, arguments):
            yield value
            yield from arguments
        case tree.ListOf(items):
            yield from items
        case tree.MapOf(pairs):
            yield from (part for pair in pairs for part in pair)
        case tree.Call(_, arguments, pairs):
            yield from arguments
            yield from (part for pair in pairs for part in pair)
