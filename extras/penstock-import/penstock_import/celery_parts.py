"""The canvases and signatures that code keeps in a name, returns or collects, and makes parts of another canvas. The start of
that canvas starts them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from penstock_import.celery_calls import called, once, walk
from penstock_import.celery_scopes import parents_of

_CANVASES = frozenset({"chain", "chord", "group"})
_ADDING = frozenset({"add", "append", "appendleft", "extend", "insert"})
_LINKING = frozenset({"add_to_chord", "link", "link_error", "on_error"})
_SAME = frozenset({"clone", "freeze", "on_error", "set", "stamp"})
"""The methods that return the signature itself or a copy of it."""
_AROUND = (
    ast.Await,
    ast.DictComp,
    ast.GeneratorExp,
    ast.IfExp,
    ast.List,
    ast.ListComp,
    ast.NamedExpr,
    ast.Set,
)
_FUNCTIONS = (ast.AsyncFunctionDef, ast.FunctionDef)
PART = "Write it into the workflow of that canvas, whose start also starts it: a start of its own would be a second one."


class Parts:
    """The search for the canvas that a canvas or a signature becomes a part of."""

    def __init__(self, trees: Mapping[str, ast.Module]) -> None:
        self._trees = trees

    def whole_of(self, file: str, node: ast.AST) -> str | None:
        """Return the place of the canvas that uses this one as a part: a line, or a file and a line. None if none does."""
        waiting, visited = [(file, node)], {id(node)}
        while waiting:
            place, value = waiting.pop()
            for step in self._steps(place, value):
                if isinstance(step, int):
                    return f"line {step}" if place == file else f"{place}:{step}"
                if id(step[1]) not in visited:
                    visited.add(id(step[1]))
                    waiting.append(step)
        return None

    def _steps(self, file: str, node: ast.AST) -> Iterator[int | tuple[str, ast.AST]]:
        """Yield the line of a canvas around a value, or the further values that have it."""
        tree = self._trees[file]
        parents = parents_of(tree)
        parent = parents.get(id(node))
        if isinstance(parent, ast.keyword | ast.Starred):
            node, parent = parent, parents.get(id(parent))
        if isinstance(parent, ast.Call) and node is not parent.func:
            yield from self._steps_of_argument(file, tree, node, parent)
        elif isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.BitOr):
            yield parent.lineno
        elif isinstance(parent, ast.Attribute):
            call = parents.get(id(parent))
            if parent.attr in _SAME and isinstance(call, ast.Call) and call.func is parent:
                yield file, call
        elif isinstance(parent, _AROUND):
            yield file, parent
            if isinstance(parent, ast.NamedExpr):
                yield from ((file, use) for use in _uses(tree, parent.target))
        elif isinstance(parent, ast.Assign | ast.AnnAssign | ast.AugAssign) and node is parent.value:
            targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
            for target in targets:
                yield from ((file, use) for use in _uses(tree, target))
        elif isinstance(parent, ast.Return):
            yield from self._calls_of(parents, parent)

    def _steps_of_argument(
        self, file: str, tree: ast.Module, node: ast.AST, call: ast.Call
    ) -> Iterator[int | tuple[str, ast.AST]]:
        name = called(call)
        is_canvas = name in _CANVASES or (isinstance(call.func, ast.Call) and called(call.func) in _CANVASES)
        is_linked = isinstance(node, ast.keyword) and node.arg in ("body", "header", "link", "link_error")
        if is_canvas or is_linked or name in _LINKING:
            yield call.lineno
        elif name in _ADDING and isinstance(call.func, ast.Attribute):
            yield from ((file, use) for use in _uses(tree, call.func.value))
        elif name in ("list", "tuple"):
            yield file, call
        else:
            for other, function in self._functions(name):
                parameter = _parameter(function, node, call)
                if parameter is not None:
                    yield from (
                        (other, use)
                        for use in walk(function)
                        if isinstance(use, ast.Name) and use.id == parameter and isinstance(use.ctx, ast.Load)
                    )

    def _functions(self, name: str) -> list[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
        """Return the functions of this name, if there is only one of them."""
        functions = [
            (file, node) for file, tree in self._trees.items() for node in _functions_of(tree).get(name, ())
        ]
        return functions if len(functions) == 1 else []

    def _calls_of(self, parents: dict[int, ast.AST], place: ast.AST) -> Iterator[tuple[str, ast.AST]]:
        """Yield the calls of the function around a statement."""
        around: ast.AST | None = place
        while around is not None and not isinstance(around, _FUNCTIONS):
            around = parents.get(id(around))
        if around is None or not self._functions(around.name):
            return
        for file, tree in self._trees.items():
            yield from ((file, call) for call in _calls(tree).get(around.name, ()))


@once
def _functions_of(tree: ast.AST) -> dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]]:
    functions: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]] = {}
    for node in walk(tree):
        if isinstance(node, _FUNCTIONS):
            functions.setdefault(node.name, []).append(node)
    return functions


@once
def _calls(tree: ast.AST) -> dict[str, list[ast.Call]]:
    calls: dict[str, list[ast.Call]] = {}
    for node in walk(tree):
        if isinstance(node, ast.Call) and (name := called(node)):
            calls.setdefault(name, []).append(node)
    return calls


def _uses(tree: ast.Module, target: ast.expr) -> list[ast.AST]:
    """Return the reads of a variable in the function around it, or of an attribute in its module."""
    if isinstance(target, ast.Attribute):
        return [
            node
            for node in walk(tree)
            if isinstance(node, ast.Attribute) and node.attr == target.attr and isinstance(node.ctx, ast.Load)
        ]
    if not isinstance(target, ast.Name):
        return []
    parents = parents_of(tree)
    scope: ast.AST = target
    while not isinstance(scope, (*_FUNCTIONS, ast.Module)):
        scope = parents[id(scope)]
    return [
        node
        for node in walk(scope)
        if isinstance(node, ast.Name) and node.id == target.id and isinstance(node.ctx, ast.Load)
    ]


def _parameter(
    function: ast.FunctionDef | ast.AsyncFunctionDef, argument: ast.AST, call: ast.Call
) -> str | None:
    """Return the parameter of a function that a call gives this argument."""
    if isinstance(argument, ast.keyword):
        return argument.arg
    names = [entry.arg for entry in (*function.args.posonlyargs, *function.args.args)]
    if names[:1] in (["cls"], ["self"]):
        names.pop(0)
    number = next((number for number, value in enumerate(call.args) if value is argument), len(names))
    return names[number] if number < len(names) else None
