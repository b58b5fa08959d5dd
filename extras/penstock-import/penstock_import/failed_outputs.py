"""The expression for the output of a workflow that fails. Orquesta evaluates each output by itself, and leaves out one
with a missing value."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping

from jinja2 import Environment, TemplateSyntaxError, nodes

from penstock_import.wanted_text import member

_SYNTAX = Environment()
_ROOTS = frozenset({"context", "tasks"})
_FOR_MISSING = frozenset({"default", "d", "defined", "undefined"})
"""The filters and tests that accept a missing value."""


def output_expression(outputs: Mapping[str, str], certain: Collection[str]) -> str:
    """Return the expression for a mapping of the outputs. `outputs` has the expression of each one by its key, a literal. An
    output is left out if a value that it reads is missing. The variables `certain` are never missing."""
    always = {member("context", name) for name in certain}
    parts: list[str] = []
    together: list[str] = []
    for key, text in outputs.items():
        conditions = [path for path in dict.fromkeys(_paths(text)) if path not in always]
        if not conditions:
            together.append(f"{key}: {text}")
            continue
        if together:
            parts.append(f"{{{', '.join(together)}}}")
            together = []
        condition = " and ".join(f"{path} is defined" for path in conditions)
        parts.append(f"({{{key}: {text}}} if {condition} else {{}})")
    if together or not parts:
        parts.append(f"{{{', '.join(together)}}}")
    return parts[0] if len(parts) == 1 else f"({parts[0]} | combine({', '.join(parts[1:])}))"


def _paths(text: str) -> Iterator[str]:
    """Yield the paths of variables and results that each evaluation of an expression reads."""
    try:
        tree = _SYNTAX.parse(f"{{{{ {text} }}}}")
    except TemplateSyntaxError:
        return
    yield from _always_read(tree)


def _always_read(node: nodes.Node) -> Iterator[str]:
    if (path := _path(node)) is not None:
        yield path
    elif isinstance(node, nodes.Call) and isinstance(node.node, nodes.Getattr):
        yield from _always_read(node.node.node)
        for child in (*node.args, *node.kwargs):
            yield from _always_read(child)
    elif isinstance(node, nodes.CondExpr):
        yield from _always_read(node.test)
    elif isinstance(node, nodes.And | nodes.Or):
        yield from _always_read(node.left)
    elif not (isinstance(node, nodes.Filter | nodes.Test) and node.name in _FOR_MISSING):
        for child in node.iter_child_nodes():
            yield from _always_read(child)


def _path(node: nodes.Node) -> str | None:
    """Return the text of a path such as `context.a.b[0]`; None for any other node."""
    if isinstance(node, nodes.Getattr):
        owner, key = node.node, node.attr
    elif isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const):
        owner, key = node.node, node.arg.value
    else:
        return None
    start = owner.name if isinstance(owner, nodes.Name) and owner.name in _ROOTS else _path(owner)
    if start is None:
        return None
    return member(start, key) if isinstance(key, str) else f"{start}[{json.dumps(key)}]"
