"""The folders that Python searches for the modules of a source, read from how the code imports them and how Celery is
started."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from sys import stdlib_module_names

from penstock_import.celery_calls import called, walk

Root = tuple[str, ...]
"""The parts of a folder below that of the source."""

_STARTED, _IMPORTED, _WRITTEN, _SINGLE = 4, 3, 2, 1
"""The weights of a folder. Celery starts with a module below it, a statement imports from it, or a text is the path of a
module below it. The smallest is that of a module directly below it, and of a text with the path of a member."""
_APP = re.compile(
    r"""(?s)\bcelery\b.{0,200}?[\s"'](?:-A|--app)(?:=|["']?,?\s*(?:-\s+)?)["']?([A-Za-z_][\w.]*)"""
)
"""A pattern for a command of Celery, with the path of its application."""
_PATH = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_LISTS = frozenset({"CELERY_IMPORTS", "CELERY_INCLUDE", "imports", "include"})
"""The names of settings with the modules that a worker imports."""
_OF_OTHERS = stdlib_module_names | {"celery", "django", "kombu", "redis", "flask", "fastapi"}


@dataclass(slots=True)
class SearchPath:
    """The folders of a source from which modules are imported."""

    packages: dict[Root, dict[str, int]] = field(default_factory=dict)
    """By folder: the names directly below it by which paths begin, with the largest weight of each."""
    modules: dict[str, dict[Root, int]] = field(default_factory=dict)
    """By file: the folders from which the file itself is imported, with their weights."""

    def of_module(self, file: str) -> list[Root]:
        """Return the folders from which the file itself is imported, as far as statements or commands of Celery tell it."""
        return _heaviest(
            {root: weight for root, weight in self.modules.get(file, {}).items() if weight > _SINGLE}
        )

    def of_package(self, file: str) -> list[Root]:
        """Return the folders from which a file may be imported, since other modules of its package are."""
        parts = tuple(file.split("/"))
        around: dict[Root, int] = {}
        for root, names in self.packages.items():
            if parts[: len(root)] != root:
                continue
            below = parts[len(root)]
            weight = max(names.values()) if below.endswith(".py") else names.get(below, 0)
            if weight:
                around[root] = weight
        return _heaviest(around)


def _heaviest(weights: Mapping[Root, int]) -> list[Root]:
    largest = max(weights.values(), default=0)
    return sorted((root for root, weight in weights.items() if weight == largest), key=len, reverse=True)


def search_path(trees: Mapping[str, ast.Module], texts: Mapping[Path, str]) -> SearchPath:
    """Return the folders from which the modules are imported. `texts` are the files that are not Python."""
    places = _places(trees)
    path = SearchPath()
    for file, tree in trees.items():
        for text, weight in _imports(tree):
            _add(path, places, trees, tuple(file.split("/")[:-1]), text, weight)
    for name, content in texts.items():
        folder = tuple(name.parts[:-1])
        for match in _APP.finditer(content) if "celery" in content else ():
            _add(path, places, trees, folder, match[1], _STARTED)
    return path


def _places(trees: Iterable[str]) -> dict[str, dict[Root, str]]:
    """Return the files and the folders of packages, by each end of their paths and by the folder above that end. The file
    of a folder is empty unless it has an `__init__.py`."""
    places: dict[str, dict[Root, str]] = {}
    for file in trees:
        parts = file.removesuffix(".py").split("/")
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        for first in range(len(parts)):
            places.setdefault(".".join(parts[first:]), {})[tuple(parts[:first])] = file
        for last in range(1, len(parts)):
            for first in range(last):
                places.setdefault(".".join(parts[first:last]), {}).setdefault(tuple(parts[:first]), "")
    return places


def _imports(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield each path that a module imports, or names for Celery to import, with its weight."""
    for node in walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names = [alias.name for alias in node.names if alias.name != "*"]
            for name in names or [""]:
                yield f"{node.module}.{name}".rstrip("."), _IMPORTED
        elif isinstance(node, ast.Import):
            yield from ((alias.name, _IMPORTED) for alias in node.names)
        elif (value := _modules_listed(node)) is not None:
            yield from ((text, _STARTED) for text in _texts(value))
        elif isinstance(node, ast.Call) and called(node) == "autodiscover_tasks" and node.args:
            yield from ((text, _STARTED) for text in _texts(node.args[0]))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "." in node.value:
            yield from ((text, _WRITTEN) for text in _texts(node))


def _modules_listed(node: ast.AST) -> ast.expr | None:
    """Return the value that a node gives a setting with modules; None for any other node."""
    if isinstance(node, ast.keyword) and node.arg in _LISTS:
        return node.value
    if isinstance(node, ast.Assign) and any(_last(target) in _LISTS for target in node.targets):
        return node.value
    return None


def _last(target: ast.expr) -> str:
    if isinstance(target, ast.Subscript):
        return str(getattr(target.slice, "value", ""))
    return target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")


def _texts(value: ast.expr) -> Iterator[str]:
    parts = value.elts if isinstance(value, ast.List | ast.Tuple | ast.Set) else [value]
    for part in parts:
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and _PATH.fullmatch(part.value):
            yield part.value


def _add(
    path: SearchPath,
    places: Mapping[str, Mapping[Root, str]],
    trees: Mapping[str, ast.Module],
    folder: Root,
    text: str,
    weight: int,
) -> None:
    """Note the folders from which a file in `folder` imports the module or the member `text`. Of several, the one nearest
    to the file counts."""
    module = text if text in places else text.rpartition(".")[0]
    roots = places.get(module, {})
    if not module or not roots or module.partition(".")[0] in _OF_OTHERS:
        return
    around = [root for root in roots if folder[: len(root)] == root]
    nearest = [max(around, key=len)] if around else list(roots)
    if len(nearest) > 1 and weight != _STARTED:
        return
    is_single = weight != _STARTED and ("." not in module or (weight == _WRITTEN and module != text))
    for root in nearest:
        is_regular = "/".join((*root, "__init__.py")) in trees
        if is_single and "." not in module and (is_regular or not around):
            continue  # the module of another package may have the name
        own_weight = _SINGLE if is_single else weight
        names = path.packages.setdefault(root, {})
        first = module.partition(".")[0]
        names[first] = max(names.get(first, 0), own_weight)
        file = roots[root]
        if file:
            own = path.modules.setdefault(file, {})
            own[root] = max(own.get(root, 0), own_weight)
