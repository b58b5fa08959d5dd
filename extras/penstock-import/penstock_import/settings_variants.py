"""The modules of settings of a Django project that stand for each other, as `local.py` and `production.py` beside `base.py`."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping

from penstock_import.celery_calls import absolute_path, walk
from penstock_import.celery_sources import is_whole, modules_of_django

_MARKS = frozenset({"INSTALLED_APPS", "ROOT_URLCONF"})
"""The names that each whole module of settings gives or takes."""


class Variants:
    """The choices of `DJANGO_SETTINGS_MODULE`, and the modules of settings that each of them takes in any case."""

    def __init__(self, trees: Mapping[str, ast.Module]) -> None:
        imports = {file: list(_imports(file, tree, trees)) for file, tree in trees.items()}
        named = {path for tree in trees.values() for _, path in modules_of_django(tree)}
        settings = {file for file, tree in trees.items() if _gives_marks(tree)}
        settings |= {file for file in trees for path in named if is_whole(file, path)}
        while True:
            further = {file for file, names in imports.items() if settings & {name for name, _ in names}}
            further |= {name for file in settings for name, _ in imports[file]}
            if further <= settings:
                break
            settings |= further
        taken_by_others = {name for file in settings for name, _ in imports[file]}
        whole = {file for file in settings if _gives_marks(trees[file]) or imports[file]}
        whole |= {file for file in settings for path in named if is_whole(file, path)}
        choices = {file for file in whole if file not in taken_by_others and not _is_of_tests(file)}
        self._settings = settings
        self._always = {choice: _closure(choice, imports) for choice in choices}

    def without(self, files: Collection[str]) -> list[str]:
        """Return the choices that do not take any of these modules in any case. Only modules of settings count."""
        if not files or not self._settings.issuperset(files):
            return []
        return sorted(choice for choice, modules in self._always.items() if modules.isdisjoint(files))


def _imports(file: str, tree: ast.Module, trees: Mapping[str, ast.Module]) -> Iterator[tuple[str, bool]]:
    """Yield each file from which a module takes all names, and whether it always does."""
    at_top = {id(statement) for statement in tree.body}
    for node in walk(tree):
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            path = absolute_path(file, node)
            own = {f"{path.replace('.', '/')}{end}" for end in (".py", "/__init__.py")} & trees.keys()
            for other in own or {other for other in trees if path and is_whole(other, path)}:
                if other != file:
                    yield other, id(node) in at_top


def _closure(file: str, imports: Mapping[str, list[tuple[str, bool]]]) -> set[str]:
    """Return the files of which a module always takes the names, with the module itself."""
    closure, waiting = {file}, [file]
    while waiting:
        further = {name for name, is_always in imports[waiting.pop()] if is_always} - closure
        closure |= further
        waiting += further
    return closure


def _gives_marks(tree: ast.Module) -> bool:
    return any(
        isinstance(target, ast.Name) and target.id in _MARKS
        for statement in tree.body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for target in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
    )


def _is_of_tests(file: str) -> bool:
    return "test" in file.rpartition("/")[2].lower()
