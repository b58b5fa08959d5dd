"""The constants of the modules of a source, read where another module names one as a member of its module."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from penstock_import.celery_calls import absolute_path, bound_names, forget, once, walk


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
    return {
        name: supplied[0]
        for name, supplied in values.items()
        if name in top
        and bindings[name] == 1
        and len(supplied) == 1
        and isinstance(supplied[0], ast.Constant | ast.Call | ast.BinOp)
    }


class _Members(ast.NodeTransformer):
    def __init__(self, constants: Mapping[str, ast.Constant]) -> None:
        self._constants = constants

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        constant = self._constants.get(ast.unparse(node)) if isinstance(node.ctx, ast.Load) else None
        return ast.copy_location(copy.deepcopy(constant), node) if constant else self.generic_visit(node)


def assigned_members(trees: Iterable[ast.Module]) -> set[str]:
    """Return the names of all members that a module assigns."""
    return {
        node.attr
        for tree in trees
        for node in walk(tree)
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)
    }


def read_members(
    file: str, tree: ast.Module, modules: Mapping[str, ast.Module], changed: Collection[str]
) -> None:
    """Replace `consts.LIMIT` by its value, where `consts` is a module of the source. `modules` are all of them, by each name
    that they may be imported by, and by their paths behind a dot. A member in `changed` stays as it is."""
    paths = {name: path for name, path in _imported_modules(file, tree) if path in modules}
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


def _imported_modules(file: str, tree: ast.Module) -> list[tuple[str, str]]:
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
