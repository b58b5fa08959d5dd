"""The names by which Celery knows the tasks of a file. A name begins with the module, as the application imports it."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from penstock_import.celery_calls import walk
from penstock_import.celery_search_path import search_path

_PATHS = ("sys.path.insert", "sys.path.append", "site.addsitedir")
_TEXT = re.compile(r"""["']([^"']*)["']""")


class ModuleNames:
    """The names of the modules of a folder. `is_package` tells whether the folder itself is imported as a package."""

    def __init__(
        self,
        folder: Path,
        package: str,
        is_package: bool,
        trees: Mapping[str, ast.Module],
        texts: Mapping[Path, str] | None = None,
    ) -> None:
        self._folder, self._package = folder, package
        self._search_path = search_path(trees, texts or {})
        self._started = _of_django(trees, package)
        """The folders in which `manage.py` runs, and that no file imports as a package."""
        self._is_package = is_package and () not in self._started
        self._roots = sorted(
            {*_roots(folder, trees), *self._started - {()}}, key=lambda parts: (-len(parts), parts)
        )
        self._is_named = self._is_package or any(_names_package(tree, package) for tree in trees.values())
        """True where the folder is a package, or a file names something below it as one."""

    def of(self, file: str) -> list[str]:
        """Return the possible names of a module. The first is that by which the sources or a command of Celery import
        it. Then come that of its regular package, and its names below the folders that Python searches."""
        parts, depth, folders = self._parts(file)
        below = _below(parts, self._roots)
        names = list(below)
        if depth < len(folders) and (depth > 0 or not self._is_package):
            names.insert(0, ".".join(parts[depth:]))
        names = _below(parts, self._imported_from(file)) + names
        whole = ".".join(parts)
        names += [f"{self._package}{whole}"] + ([] if self._is_package else [whole])
        names = list(dict.fromkeys(names))
        if not self._is_named:
            names.append(names.pop(names.index(f"{self._package}{whole}")))
        return names

    def further(self, file: str) -> list[str]:
        """Return the names that a module has besides, if Python searches a folder that no file tells. It is empty where the
        name is certain."""
        parts, depth, folders = self._parts(file)
        imported = self._imported_from(file)
        is_regular = self._is_package or depth < len(folders)
        is_certain = bool(imported or is_regular or _below(parts, self._roots) or self._is_named)
        names = [".".join(parts[first:]) for first in range(len(folders) + 1)] if not is_certain else []
        names += _below(parts, imported) if len(imported) > 1 else []
        return [name for name in dict.fromkeys(names) if name and name != self.of(file)[0]]

    def _parts(self, file: str) -> tuple[list[str], int, list[str]]:
        """Return the parts of a module's path, the number of folders above its outermost regular package, and its folders."""
        parts = file.removesuffix(".py").split("/")
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        folders = parts if file.endswith("__init__.py") else parts[:-1]
        depth = len(folders)
        while (
            depth > 0
            and tuple(folders[:depth]) not in self._started
            and (self._folder.joinpath(*folders[:depth]) / "__init__.py").exists()
        ):
            depth -= 1
        return parts, depth, folders

    def _imported_from(self, file: str) -> list[tuple[str, ...]]:
        """Return the folders from which the sources or a command import a module. Those that a file adds to the path of
        Python precede those that only imports of its neighbors tell."""
        own = self._search_path.of_module(file)
        parts = file.removesuffix(".py").split("/")
        return own or ([] if _below(parts, self._roots) else self._search_path.of_package(file))


def _below(parts: Sequence[str], roots: Iterable[tuple[str, ...]]) -> list[str]:
    """Return the names of a module below those of the folders that contain it."""
    below = [parts[len(root) :] for root in roots if tuple(parts[: len(root)]) == root]
    return [".".join(parts_below) for parts_below in below if parts_below]


def _of_django(trees: Mapping[str, ast.Module], package: str) -> frozenset[tuple[str, ...]]:
    """Return the folders with a `manage.py` that no file imports as packages. Python searches such a folder for
    modules, and it is not a package, even with an `__init__.py`."""
    folders = [tuple(file.split("/")[:-1]) for file in trees if file.rpartition("/")[2] == "manage.py"]
    names = {parts: f"{parts[-1]}." if parts else package for parts in folders}
    return frozenset(
        parts
        for parts, name in names.items()
        if not any(_names_package(tree, name) for tree in trees.values())
    )


def _names_package(tree: ast.Module, package: str) -> bool:
    """Return whether a module imports from a package, or has a text that begins with it. `package` ends with a dot."""
    return any(
        (isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(package))
        or (isinstance(node, ast.alias) and f"{node.name}.".startswith(package))
        or (isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(package))
        for node in walk(tree)
    )


def _roots(folder: Path, trees: Mapping[str, ast.Module]) -> list[tuple[str, ...]]:
    """Return the folders below `folder` that its files add to the path of Python, deepest first."""
    written = {text for tree in trees.values() for text in _added(tree, trees)} | set(_of_project(folder))
    folders = {
        tuple(path.relative_to(folder).parts)
        for text in written
        for path in _places(folder, text)
        if path.is_dir() and path != folder
    }
    return sorted(folders, key=lambda parts: (-len(parts), parts))


def _places(folder: Path, text: str) -> Iterator[Path]:
    parts = [part for part in Path(text).parts if part not in (".", "/")]
    if parts and ".." not in parts:
        yield folder.joinpath(*parts)


def _added(tree: ast.Module, trees: Mapping[str, ast.Module]) -> Iterator[str]:
    """Yield the last literal parts of each folder that a module adds to `sys.path`, also by a name of any module."""
    for node in walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in _PATHS and node.args:
            folder = node.args[-1]
            if isinstance(folder, ast.Call) and len(folder.args) == 1 and ast.unparse(folder.func) == "str":
                folder = folder.args[0]
            is_name = isinstance(folder, ast.Name | ast.Attribute)
            for value in _values_of(ast.unparse(folder).rpartition(".")[2], trees) if is_name else [folder]:
                parts = _TEXT.findall(ast.unparse(value))
                if parts:
                    yield "/".join(part.strip("/") for part in parts)
        elif isinstance(node, ast.keyword) and node.arg == "package_dir" and isinstance(node.value, ast.Dict):
            for key, value in zip(node.value.keys, node.value.values, strict=True):
                if getattr(key, "value", None) == "" and isinstance(value, ast.Constant):
                    yield str(value.value)


def _values_of(name: str, trees: Mapping[str, ast.Module]) -> Iterator[ast.expr]:
    """Yield the values that statements at the top of the modules give a name."""
    for tree in trees.values():
        for part in tree.body:
            if isinstance(part, ast.Assign) and any(
                getattr(target, "id", "") == name for target in part.targets
            ):
                yield part.value


def _of_project(folder: Path) -> Iterator[str]:
    """Yield the folders that the metadata of a project name as those of its packages."""
    file = folder / "pyproject.toml"
    try:
        about = tomllib.loads(file.read_text()) if file.is_file() else {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        about = {}
    tools = about.get("tool", {})
    setuptools = tools.get("setuptools", {})
    if isinstance(named := setuptools.get("package-dir", {}), dict):
        yield from (str(value) for key, value in named.items() if key == "")
    packages = setuptools.get("packages", {})
    if isinstance(packages, dict) and isinstance(packages.get("find"), dict):
        yield from map(str, packages["find"].get("where", ()))
    for package in tools.get("poetry", {}).get("packages", ()):
        if isinstance(package, dict) and isinstance(package.get("from"), str):
            yield package["from"]
