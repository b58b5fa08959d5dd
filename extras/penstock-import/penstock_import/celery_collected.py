"""The signatures that a function keeps in a variable or collects in a list, before it makes a canvas of them."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from penstock_import.celery_calls import called, walk
from penstock_import.celery_scopes import names_bound_otherwise, parents_of


@dataclass(slots=True)
class Signatures:
    """The signatures of a list. `node` is the comprehension or the name of the list."""

    nodes: list[ast.expr]
    node: ast.ListComp | ast.GeneratorExp | ast.Name
    comprehension: ast.ListComp | None = None
    """The comprehension that makes the list of a name."""
    items: list[str] = field(default_factory=list)
    """The expressions that the list takes instead of each signature, or the one comprehension that makes it instead."""


def collected(tree: ast.Module, argument: ast.expr) -> Signatures | None:
    """Return the signatures of the list that a name has. It is None if the list is not certain: it is
    made by one comprehension, or by an empty list and calls of its `append`."""
    name = argument.value if isinstance(argument, ast.Starred) else argument
    if not isinstance(name, ast.Name):
        return None
    parents = parents_of(tree)
    function = _function_of(name, parents)
    if function is None or name.id in names_bound_otherwise(function):
        return None
    nodes: list[ast.expr] = []
    starts: list[ast.expr] = []
    for node in walk(function):
        if isinstance(node, ast.Global | ast.Nonlocal) and name.id in node.names:
            return None
        if isinstance(node, ast.arg) and node.arg == name.id:
            return None
        if not isinstance(node, ast.Name) or node.id != name.id or node is name:
            continue
        parent = parents[id(node)]
        if _function_of(node, parents) is not function:
            return None
        if isinstance(parent, ast.Assign | ast.AnnAssign) and not isinstance(node.ctx, ast.Load):
            value = _only_value(parent)
            is_empty = isinstance(value, ast.List) and not value.elts
            if value is None or not (is_empty or isinstance(value, ast.ListComp)):
                return None
            starts.append(value)
        elif (appended := _appended(node, parents)) is not None:
            nodes.append(appended)
        elif not _is_tested(node, parents):
            return None
    if len(starts) != 1:
        return None
    if isinstance(starts[0], ast.ListComp):
        return Signatures([starts[0].elt], name, starts[0]) if not nodes else None
    return Signatures(nodes, name) if nodes else None


def signature_named(tree: ast.Module, name: ast.Name) -> ast.expr | None:
    """Return the expression that the one statement of a function gives a variable, if nothing else but this place reads
    it. It is None if a variable of the expression may have another value by then."""
    parents = parents_of(tree)
    function = _function_of(name, parents)
    if function is None:
        return None
    uses = [node for node in walk(function) if isinstance(node, ast.Name) and node.id == name.id]
    bindings = [node for node in uses if node is not name]
    statement = parents[id(bindings[0])] if len(bindings) == 1 else None
    if (
        not isinstance(statement, ast.Assign | ast.AnnAssign)
        or _function_of(statement, parents) is not function
    ):
        return None
    value = _only_value(statement)
    stored = names_bound_otherwise(function) + [
        node.id
        for node in walk(function)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    ]
    words = {node.id for node in walk(value) if isinstance(node, ast.Name)} if value is not None else set()
    arguments = {node.arg for node in walk(function) if isinstance(node, ast.arg)}
    is_steady = all(stored.count(word) + (word in arguments) <= 1 for word in words)
    is_shared = (
        name.id in arguments
        or stored.count(name.id) > 1
        or any(isinstance(node, ast.Global | ast.Nonlocal) for node in walk(function))
    )
    return value if is_steady and not is_shared else None


def values_at_line(signature: ast.expr) -> list[str]:
    """Return the arguments of a signature that may have other values after its line: all but names and literals."""
    if not isinstance(signature, ast.Call):
        return []
    arguments = [*signature.args, *(word.value for word in signature.keywords)]
    changing = (ast.Attribute, ast.Await, ast.Call, ast.Subscript)
    return [
        ast.unparse(argument)
        for argument in arguments
        if any(isinstance(part, changing) for part in ast.walk(argument))
    ]


def _only_value(statement: ast.Assign | ast.AnnAssign) -> ast.expr | None:
    """Return the value of an assignment to one variable; None for any other assignment."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return statement.value if len(targets) == 1 and isinstance(targets[0], ast.Name) else None


def _function_of(node: ast.AST, parents: dict[int, ast.AST]) -> ast.AST | None:
    """Return the innermost function around a node; None at the top of a module or of a class."""
    around = parents.get(id(node))
    while around is not None and not isinstance(
        around, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    ):
        around = parents.get(id(around))
    return around if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef) else None


def _appended(node: ast.Name, parents: dict[int, ast.AST]) -> ast.expr | None:
    """Return the argument of `name.append(...)` as a statement; None for any other use of the name."""
    member = parents[id(node)]
    call = parents[id(member)]
    if not isinstance(member, ast.Attribute) or member.attr != "append" or not isinstance(call, ast.Call):
        return None
    is_statement = call.func is member and isinstance(parents[id(call)], ast.Expr)
    return call.args[0] if is_statement and len(call.args) == 1 and not call.keywords else None


def _is_tested(node: ast.Name, parents: dict[int, ast.AST]) -> bool:
    """Return whether a name is only asked for its length, or whether it is empty."""
    part: ast.AST = node
    parent = parents[id(node)]
    if isinstance(parent, ast.Call):
        return called(parent) == "len" and isinstance(parent.func, ast.Name)
    while isinstance(parent, ast.BoolOp):
        part, parent = parent, parents[id(parent)]
    if isinstance(parent, ast.UnaryOp):
        return part is node and isinstance(parent.op, ast.Not)
    return isinstance(parent, ast.If | ast.While | ast.IfExp) and parent.test is part
