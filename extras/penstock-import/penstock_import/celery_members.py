"""The constants of the modules of a source, read where another module names one as a member of its module."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Collection, Mapping

from penstock_import.celery_calls import absolute_path, bound_names, called, forget, once, walk


@once
def constants_of(tree: ast.AST) -> dict[str, ast.expr]:
    """Return the names of a module that are given once, and as a literal or a time."""
    values: dict[str, list[ast.expr]] = {}
    for node in walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            values.setdefault(node.targets[0].id, []).append(node.value)
        elif (
            isinstance(node, ast.AnnAssign | ast.AugAssign)
            and isinstance(node.target, ast.Name)
            and node.value is not None
        ):
            values.setdefault(node.target.id, []).append(node.value)
    top = {
        node.targets[0].id
        for node in ast.iter_child_nodes(tree)
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
    }
    bindings = bound_names(tree)
    overwritten: frozenset[str] = tree.__dict__.get("overwritten", frozenset())
    return {
        name: supplied[0]
        for name, supplied in values.items()
        if name in top
        and name not in overwritten
        and bindings[name] == 1
        and len(supplied) == 1
        and isinstance(supplied[0], ast.Constant | ast.Call | ast.BinOp)
    }


def note_overwritten(file: str, tree: ast.Module, modules: Mapping[str, ast.Module]) -> None:
    """Note the names of a module that a later `import *` may give another value. They are not constants."""
    names: set[str] = set()
    for node in walk(tree):
        if not isinstance(node, ast.ImportFrom) or not any(alias.name == "*" for alias in node.names):
            continue
        source = modules.get(("." if node.level else "") + absolute_path(file, node))
        source_names = None if source is None else bound_names(source)
        names |= {
            part.id
            for part in walk(tree)
            if isinstance(part, ast.Name)
            and not isinstance(part.ctx, ast.Load)
            and part.lineno <= node.lineno
            if source_names is None or part.id in source_names or "*" in source_names
        }
    if names:
        tree.__dict__["overwritten"] = frozenset(names)
        forget(tree)


class _Members(ast.NodeTransformer):
    def __init__(self, constants: Mapping[str, ast.Constant]) -> None:
        self._constants = constants

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        constant = self._constants.get(ast.unparse(node)) if isinstance(node.ctx, ast.Load) else None
        return ast.copy_location(copy.deepcopy(constant), node) if constant else self.generic_visit(node)


def assigned_members(trees: Collection[ast.Module]) -> set[str]:
    """Return the names of all members that a module assigns, also by `setattr`. A setting of `app.conf` is not a member of a
    module."""
    set_by_name = {
        node.args[1].value
        for tree in trees
        for node in walk(tree)
        if isinstance(node, ast.Call) and called(node) == "setattr" and len(node.args) == 3
        if isinstance(node.args[1], ast.Constant) and isinstance(node.args[1].value, str)
        if not (isinstance(node.args[0], ast.Attribute) and node.args[0].attr == "conf")
    }
    return set_by_name | {
        node.attr
        for tree in trees
        for node in walk(tree)
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)
        if not (isinstance(node.value, ast.Attribute) and node.value.attr == "conf")
    }


def read_members(
    file: str, tree: ast.Module, modules: Mapping[str, ast.Module], changed: Collection[str]
) -> None:
    """Replace `consts.LIMIT` by its value, where `consts` is a module of the source. `modules` are all modules of the
    source, by each name that they may be imported by, and by their paths behind a dot. A member in `changed` stays as it is."""
    paths = {name: path for name, path in imported_modules(file, tree) if path in modules}
    if not paths:
        return
    constants = {
        f"{name}.{member}": value
        for name, path in paths.items()
        for member, value in constants_of(modules[path]).items()
        if isinstance(value, ast.Constant) and member not in changed
    }
    if constants:
        _Members(constants).visit(tree)
        forget(tree)


class _Names(ast.NodeTransformer):
    def __init__(self, constants: Mapping[str, ast.expr]) -> None:
        self._constants = constants

    def visit_Name(self, node: ast.Name) -> ast.expr:
        constant = self._constants.get(node.id) if isinstance(node.ctx, ast.Load) else None
        return ast.copy_location(copy.deepcopy(constant), node) if constant is not None else node


def read_own_constants(
    file: str, tree: ast.Module, modules: Mapping[str, ast.Module], left_out: Collection[str]
) -> None:
    """Replace a constant of a module by its value, if another module gives another value to that name. A constant may be
    imported by its name. A name in `left_out`, or one that the module binds twice, stays as it is."""
    bound = bound_names(tree)
    constants = dict(constants_of(tree))
    for node in walk(tree):
        if isinstance(node, ast.ImportFrom):
            path = ("." if node.level else "") + absolute_path(file, node)
            own = constants_of(modules[path]) if path in modules else {}
            constants |= {
                alias.asname or alias.name: own[alias.name] for alias in node.names if alias.name in own
            }
    plain = {
        name: value
        for name, value in constants.items()
        if name not in left_out and bound[name] == 1 and is_plain(value)
    }
    if plain:
        _Names(plain).visit(tree)
        forget(tree)


def is_plain(value: ast.expr) -> bool:
    """Return whether a value is a literal, a sum or product of literals, or a time of Celery."""
    if isinstance(value, ast.BinOp):
        return is_plain(value.left) and is_plain(value.right)
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id in ("crontab", "timedelta")
    return isinstance(value, ast.Constant)


def imported_modules(file: str, tree: ast.Module) -> list[tuple[str, str]]:
    """Return each name that may be one of a module, with its path. A name that is bound twice is left out."""
    imported: list[tuple[str, str]] = []
    bound = bound_names(tree)
    for node in walk(tree):
        if isinstance(node, ast.Import):
            imported += [(alias.asname or alias.name, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            path = absolute_path(file, node)
            start = "." if node.level else ""
            imported += [
                (alias.asname or alias.name, start + f"{path}.{alias.name}".lstrip("."))
                for alias in node.names
            ]
    roots = Counter(name.partition(".")[0] for name, _ in imported)
    return [(name, path) for name, path in imported if bound[root := name.partition(".")[0]] == roots[root]
            and (roots[root] == 1 or "." in name)]  # fmt: skip
