"""The permitted syntax of expressions. Other Jinja syntax is refused when a template is parsed, not when it runs.

Then the operators without a hook in the sandbox are replaced by calls of the guarded ones in `operators`.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from jinja2 import nodes
from jinja2.exceptions import TemplateSyntaxError
from jinja2.visitor import NodeTransformer

from penstock.language.expressions.budget import MAX_DEPTH
from penstock.language.expressions.functions import FILTERS, TESTS

ALLOWED: frozenset[type[nodes.Node]] = frozenset(
    {nodes.Template, nodes.Output, nodes.TemplateData, nodes.For, nodes.If, nodes.Assign}
    | {nodes.Name, nodes.Const, nodes.Tuple, nodes.List, nodes.Dict, nodes.Pair, nodes.Keyword}
    | {nodes.CondExpr, nodes.Filter, nodes.Test, nodes.Call, nodes.Getitem, nodes.Getattr, nodes.Slice}
    | {nodes.Concat, nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.Neg, nodes.Pos}
    | {nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Pow}
)
_RESERVED = frozenset({"self", "super", "caller", "varargs", "kwargs"})


class NotAllowed(TemplateSyntaxError):
    """The error for valid Jinja syntax that expressions do not have. `hint` says what to write instead."""

    def __init__(self, message: str, node: nodes.Node, hint: str | None = None) -> None:
        super().__init__(message, node.lineno)
        self.hint = hint


def check(tree: nodes.Template) -> None:
    """Raise NotAllowed for the first part of `tree` that is not permitted."""
    stack: list[tuple[nodes.Node, int]] = [(tree, 0)]
    while stack:
        node, depth = stack.pop()
        if depth > MAX_DEPTH:
            raise NotAllowed("it nests too deeply", node, "Split it into several values.")
        if type(node) not in ALLOWED:
            kind = type(node).__name__.lower()
            raise NotAllowed(
                f"`{kind}` is not part of expressions", node, "Of the blocks, use if, for and set."
            )
        _check_node(node)
        stack.extend((child, depth + 1) for child in node.iter_child_nodes())


def _check_node(node: nodes.Node) -> None:
    if isinstance(node, nodes.Name) and (node.name in _RESERVED or node.name.startswith("__")):
        raise NotAllowed(f"`{node.name}` is not available", node)
    if isinstance(node, nodes.Getattr) and node.attr.startswith("__"):
        hint = f"If it is a key of your data, write it as `['{node.attr}']`."
        raise NotAllowed(f"attributes like `{node.attr}` cannot be reached", node, hint)
    if isinstance(node, nodes.For) and node.recursive:
        raise NotAllowed("a loop cannot be recursive", node)
    if isinstance(node, nodes.CondExpr) and node.expr2 is None:
        raise NotAllowed("this `if` has no `else`", node, "Add the other value, as in `else none`.")
    if isinstance(node, nodes.Filter):
        if node.node is None:
            raise NotAllowed("a filter block is not part of expressions", node)
        _check_known("filter", node.name, FILTERS, node)
    if isinstance(node, nodes.Test):
        _check_known("test", node.name, TESTS, node)
    if isinstance(node, (nodes.Call, nodes.Filter, nodes.Test)) and (node.dyn_args or node.dyn_kwargs):
        raise NotAllowed("arguments cannot be spread with `*` here", node)


def _check_known(kind: str, name: str, names: dict[str, Any], node: nodes.Node) -> None:
    if name not in names:
        near = get_close_matches(name, names, n=1)
        meant = f"Did you mean `{near[0]}`? " if near else ""
        listed = ", ".join(sorted(name for name in names if name.isidentifier()))
        raise NotAllowed(f"there is no {kind} `{name}`", node, f"{meant}Available: {listed}.")


class Guards(NodeTransformer):
    """A tree transformer that replaces potentially unbounded operations by calls of guarded functions in `operators`."""

    def visit_For(self, node: nodes.For) -> nodes.For:
        weight = sum(1 for part in (*node.body, node.test) if part for _ in part.find_all(nodes.Node)) + 1
        self.generic_visit(node)
        values: Any = node.iter
        node.iter = _call("each", [values, nodes.Const(weight)], node)
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        self.generic_visit(node)
        if not isinstance(node.arg, nodes.Slice):
            return node
        bounds = (node.arg.start, node.arg.stop, node.arg.step)
        return _call("part", [node.node, *(bound or nodes.Const(None) for bound in bounds)], node)

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return _call("text", node.nodes, node)

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:
        cheap = _is_cheap(node)
        self.generic_visit(node)
        if cheap:
            return node
        operands: list[nodes.Expr] = [node.expr]
        for operand in node.ops:
            operands += [nodes.Const(operand.op), operand.expr]
        return _call("compare", operands, node)

    def visit_Pair(self, node: nodes.Pair) -> nodes.Pair:
        self.generic_visit(node)
        if not isinstance(node.key, nodes.Const):
            node.key = _call("key", [node.key], node)
        return node


def _is_cheap(node: nodes.Compare) -> bool:
    """Return whether Python's own comparison is certain to be quick, as it is with a literal value."""
    if len(node.ops) > 1:
        return False
    (operand,) = node.ops
    if operand.op in ("in", "notin"):
        choices = operand.expr
        return (
            isinstance(choices, (nodes.List, nodes.Tuple))
            and bool(choices.items)
            and _are_const(choices.items)
        )
    return isinstance(node.expr, nodes.Const) or isinstance(operand.expr, nodes.Const)


def _are_const(items: list[nodes.Expr]) -> bool:
    return all(isinstance(item, nodes.Const) for item in items)


def _call(name: str, args: list[nodes.Expr], at: nodes.Node) -> nodes.Call:
    guard = nodes.EnvironmentAttribute(name)
    return nodes.Call(guard, args, [], None, None, lineno=at.lineno)
