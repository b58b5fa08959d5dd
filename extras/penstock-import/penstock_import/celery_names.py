"""The names by which Celery knows the tasks of a file. A name begins with the module, as the application imports it."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from penstock_import.celery_calls import walk

_PATHS = ("sys.path.insert", "sys.path.append", "site.addsitedir")
_TEXT = re.compile(r"""["']([^"']*)["']""")


class ModuleNames:
    """The names of the modules of a folder. `is_package` tells whether the folder itself is imported as a package."""

    def __init__(self, folder: Path, package: str, is_package: bool, trees: Mapping[str, ast.Module]) -> None:
        self._folder, self._package = folder, package
        self._started = _of_django(trees, package)
        """The folders in which `manage.py` runs, and that no file imports as a package."""
        self._is_package = is_package and () not in self._started
        self._roots = sorted(
            {*_roots(folder, trees), *self._started - {()}}, key=lambda parts: (-len(parts), parts)
        )
        self._is_named = self._is_package or any(_names_package(tree, package) for tree in trees.values())
        """True where the folder is a package, or a file names something below it as one."""

    def of(self, file: str) -> list[str]:
        """Return the possible names of a module. The name of its regular package is the first, and then its names below the
        folders that Python searches."""
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
        below = [parts[len(root) :] for root in self._roots if parts[: len(root)] == list(root)]
        names = [".".join(parts_below) for parts_below in below if parts_below]
        if depth < len(folders) and (depth > 0 or not self._is_package):
            names.insert(0, ".".join(parts[depth:]))
        whole = ".".join(parts)
        names += [f"{self._package}{whole}"] + ([] if self._is_package else [whole])
        if not self._is_named:
            names.append(names.pop(names.index(f"{self._package}{whole}")))
        return list(dict.fromkeys(names))


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
    written = {text for tree in trees.values() for text in _added(tree)} | set(_of_project(folder))
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


def _added(tree: ast.Module) -> Iterator[str]:
    """Yield the last literal parts of each folder that a module adds to `sys.path`."""
    for node in walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in _PATHS and node.args:
            parts = _TEXT.findall(ast.unparse(node.args[-1]))
            if parts:
                yield "/".join(part.strip("/") for part in parts)
        elif isinstance(node, ast.keyword) and node.arg == "package_dir" and isinstance(node.value, ast.Dict):
            for key, value in zip(node.value.keys, node.value.values, strict=True):
                if getattr(key, "value", None) == "" and isinstance(value, ast.Constant):
                    yield str(value.value)


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
