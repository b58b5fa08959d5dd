"""The objects of other systems with tasks, such as Huey, in all files of a source. Celery does not know their tasks."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping

from penstock_import.celery_calls import absolute_path, bound_names, names_of_others, root_name, walk
from penstock_import.celery_members import imported_modules


class OtherSystems:
    """The names that each file has for other systems with tasks, and for their objects. `modules` are those of the source,
    by each name that they may be imported by, and by their paths behind a dot."""

    def __init__(self, trees: Mapping[str, ast.Module], modules: Mapping[str, ast.Module]) -> None:
        self._names = {id(tree): set(names_of_others(tree)) for tree in trees.values()}
        for tree in trees.values():
            self._names[id(tree)] |= _made_of(tree, self._names[id(tree)])
        self._follow(trees, modules) if any(self._names.values()) else None

    def has(self, tree: ast.Module, decorator: ast.expr) -> bool:
        """Return whether a decorator of a module is that of another system."""
        named = decorator.func if isinstance(decorator, ast.Call) else decorator
        names = self._names[id(tree)]
        holder = ast.unparse(named.value) if isinstance(named, ast.Attribute) else ""
        return root_name(named) in names or holder in names or ast.unparse(named) in names

    def _follow(self, trees: Mapping[str, ast.Module], modules: Mapping[str, ast.Module]) -> None:
        """Add the names that files import from each other, until there are no more."""
        imports = [
            (tree, alias.asname or alias.name, alias.name, modules[path])
            for file, tree in trees.items()
            for node in walk(tree)
            if isinstance(node, ast.ImportFrom)
            and (path := ("." if node.level else "") + absolute_path(file, node)) in modules
            for alias in node.names
        ]
        members = [
            (tree, name, modules[path])
            for file, tree in trees.items()
            for name, path in imported_modules(file, tree)
            if path in modules
        ]
        is_changed = True
        while is_changed:
            is_changed = False
            for tree, own, name, source in imports:
                of_source = self._names.get(id(source), set[str]())
                further = of_source if name == "*" else {own} if name in of_source else set[str]()
                is_changed |= self._add(tree, further)
            for tree, name, source in members:
                is_changed |= self._add(
                    tree, {f"{name}.{part}" for part in self._names.get(id(source), ()) if "." not in part}
                )

    def _add(self, tree: ast.Module, further: Collection[str]) -> bool:
        new = set(further) - self._names[id(tree)]
        self._names[id(tree)] |= new | _made_of(tree, new)
        return bool(new)


def _made_of(tree: ast.Module, names: Collection[str]) -> set[str]:
    """Return the classes of a module that extend one of these, and the names of its objects. The module makes these objects
    of the classes, or takes them from such objects."""
    if not names:
        return set()
    classes: set[str] = set()
    size = -1
    while size != len(classes):
        size = len(classes)
        for node in walk(tree):
            if isinstance(node, ast.ClassDef) and any(_is_of(base, names, classes) for base in node.bases):
                classes.add(node.name)
            elif (
                isinstance(node, ast.Assign | ast.AnnAssign)
                and node.value is not None
                and _is_of(node.value, names, classes)
            ):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                classes |= {
                    target.id
                    for target in targets
                    if isinstance(target, ast.Name) and bound_names(tree)[target.id] == 1
                }
    return classes


def _is_of(value: ast.expr, names: Collection[str], classes: Collection[str]) -> bool:
    """Return whether a value is one of these names, a member of it, or the result of its call."""
    root = root_name(value)
    return (
        root in names
        or root in classes
        or ast.unparse(value.func if isinstance(value, ast.Call) else value) in names
    )
