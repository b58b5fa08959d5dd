"""The meaning of a word at a place of a module: the statements that bind it in the scopes around the place."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from penstock_import.celery_calls import children, imported_names, once, root_name, walk

Function = ast.FunctionDef | ast.AsyncFunctionDef
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_TIMES = frozenset({"crontab", "maybe_schedule", "schedule", "timedelta"})
_OF_TIMES = frozenset({"celery", "datetime", "django_celery_beat"})
"""The packages with crontabs and intervals that are read."""
_CANVASES = frozenset({"chain", "chord", "group"})
_STARTS = frozenset({"delay", "apply_async", "apply"})


@once
def parents_of(tree: ast.AST) -> dict[int, ast.AST]:
    """Return the node around each node of a tree."""
    return {id(child): node for node in walk(tree) for child in children(node)}


def bindings_at(tree: ast.Module, place: ast.AST, name: str) -> list[ast.AST]:
    """Return the statements that bind a name in the innermost scope around a place that binds it."""
    parents = parents_of(tree)
    around = [place]
    while id(around[-1]) in parents:
        around.append(parents[id(around[-1])])
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    for scope in [*(node for node in around if isinstance(node, functions)), tree]:
        if bindings := list(_bindings(scope, name)):
            return bindings
    return []


def names_bound_otherwise(function: ast.AST) -> list[str]:
    """Return the names that imports, handlers, patterns, definitions, and parameters of inner functions bind within a
    function."""
    own = getattr(function, "args", None)
    own_arguments = {id(part) for part in ast.walk(own)} if own is not None else set()
    names: list[str | None] = []
    for node in walk(function):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names += [alias.asname or alias.name.partition(".")[0] for alias in node.names]
        elif isinstance(node, ast.MatchMapping):
            names.append(node.rest)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) or (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node is not function
        ):
            names.append(node.name)
        elif isinstance(node, ast.arg) and id(node) not in own_arguments:
            names.append(node.arg)
    return [name for name in names if name is not None]


@once
def local_statements(tree: ast.AST) -> set[int]:
    """Return the assignments in functions of a module that only give names of the function a value. A class in a function
    keeps its members."""
    statements: set[int] = set()
    parents = parents_of(tree)
    shared_of: dict[int, set[str]] = {}
    """The names that a function, or one within it, takes from its module, by the function."""
    for node in walk(tree):
        function = parents.get(id(node)) if isinstance(node, ast.Global) else None
        while function is not None:
            shared_of.setdefault(id(function), set()).update(getattr(node, "names", ()))
            function = parents.get(id(function))
    for node in walk(tree):
        if not isinstance(node, ast.Assign | ast.AnnAssign):
            continue
        scope: ast.AST | None = parents.get(id(node))
        while scope is not None and not isinstance(scope, _SCOPES):
            scope = parents.get(id(scope))
        if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        shared = shared_of.get(id(scope), set())
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if all(isinstance(target, ast.Name) and target.id not in shared for target in targets):
            statements.add(id(node))
    return statements


def _bindings(scope: ast.AST, name: str) -> Iterator[ast.AST]:
    waiting = children(scope)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == name:
            yield node
        if isinstance(node, _SCOPES):
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            if any((alias.asname or alias.name.partition(".")[0]) == name for alias in node.names):
                yield node
        elif isinstance(node, ast.Name):
            if node.id == name and not isinstance(node.ctx, ast.Load):
                yield node
        elif (isinstance(node, ast.arg) and node.arg == name) or (
            isinstance(node, ast.ExceptHandler) and node.name == name
        ):
            yield node
        waiting.extend(children(node))


def condition_of(tree: ast.Module, function: Function) -> str | None:
    """Return the condition under which a function exists; None for a function at the top of its module, which always
    exists."""
    parents = parents_of(tree)
    node: ast.AST | None = parents.get(id(function))
    while node is not None and not isinstance(node, ast.Module):
        if isinstance(node, ast.If | ast.While):
            return f"where {ast.unparse(node.test)}"
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return f"within {node.name}"
        if isinstance(node, ast.stmt | ast.ExceptHandler) and not isinstance(node, ast.With | ast.AsyncWith):
            return f"within {type(node).__name__.lower()}"
        node = parents.get(id(node))
    return None


def mark_other_times(tree: ast.Module) -> None:
    """Mark each call of a member with the name of a time, such as `x.crontab()`, unless `x` is a module of Celery, or of
    `datetime`."""
    for node in walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr in _TIMES or ast.unparse(node.func).endswith(".crontab.from_string"):
            root = root_name(node.func)
            bindings = bindings_at(tree, node, root)
            paths = [path for part in bindings if isinstance(part, ast.Import | ast.ImportFrom)
                     for name, path in imported_names(part)
                     if name == root and not getattr(part, "level", 0)]  # fmt: skip
            is_own = bool(paths) and len(paths) == len(bindings) and all(map(_has_times, paths))
            if not is_own or not isinstance(_without_members(node.func), ast.Name):
                node.__dict__["is_other_time"] = True


def _without_members(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node


def _has_times(path: str) -> bool:
    return path.partition(".")[0] in _OF_TIMES or path == "django.utils.timezone"


def other_time(tree: ast.Module, node: ast.expr) -> str | None:
    """Return the name of Celery or of `datetime` that an expression calls, if its module gives that name another
    meaning."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call) and part.__dict__.get("is_other_time"):
            return ast.unparse(part.func)
        name = part.func.id if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) else ""
        for binding in bindings_at(tree, tree, name) if name in _TIMES else ():
            package = (getattr(binding, "module", None) or "").partition(".")[0]
            is_relative = bool(getattr(binding, "level", 0))
            if is_relative or package not in _OF_TIMES:
                return name
    return None


def change_of(tree: ast.Module, canvas: ast.expr) -> str | None:
    """Return the reason why a canvas is not started as it is written; None if nothing changes it."""
    parents = parents_of(tree)
    for part in ast.walk(canvas):
        if isinstance(part, ast.Call) and getattr(part.func, "id", "") in _CANVASES:
            bindings = bindings_at(tree, part, root_name(part.func))
            if any(not isinstance(binding, ast.Import | ast.ImportFrom) for binding in bindings):
                return f"{root_name(part.func)} is not Celery's function of this name"
    if (change := _use(canvas, parents)) is not None:
        return change
    parent = parents.get(id(canvas))
    targets = parent.targets if isinstance(parent, ast.Assign) else []
    targets = [parent.target] if isinstance(parent, ast.AnnAssign | ast.NamedExpr) else targets
    for target in targets:
        if not isinstance(target, ast.Name):
            continue
        scope: ast.AST = target
        while not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module):
            scope = parents[id(scope)]
        for node in ast.walk(scope):
            if not isinstance(node, ast.Name) or node.id != target.id or node is target:
                continue
            if isinstance(parents[id(node)], ast.AugAssign):
                return "a canvas that other code changes afterwards"
            if isinstance(node.ctx, ast.Load) and (change := _use(node, parents)) is not None:
                return change
    return None


def _use(node: ast.AST, parents: dict[int, ast.AST]) -> str | None:
    parent = parents.get(id(node))
    call = parents.get(id(parent)) if isinstance(parent, ast.Attribute) else parent
    if isinstance(parent, ast.Subscript) and parent.value is node:
        return "a canvas that other code changes afterwards"
    if isinstance(parent, ast.Attribute) and parent.attr not in _STARTS:
        return f"a canvas whose {parent.attr} may change it"
    is_start = isinstance(call, ast.Call) and (parent is not call or call.func is node)
    if isinstance(call, ast.Call) and is_start and (call.args or call.keywords):
        return "a canvas that is started with arguments or options"
    return None
