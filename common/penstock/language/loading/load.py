"""The search for definitions in Python modules and files, packages, YAML packs, and folders of all of them."""

from __future__ import annotations

import os
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from penstock.errors import DefinitionError, all_at_once
from penstock.language.definitions.declaration import UNBOUND
from penstock.language.definitions.importing import explained, imported, imported_file
from penstock.language.definitions.qualified_name import Pack
from penstock.language.loading.collection import Definitions
from penstock.language.terms.options import did_you_mean
from penstock.language.terms.sources import Source, shown

KINDS = ("action", "trigger", "rule", "route", "limit", "schedule", "workflow")
SKIPPED = (
    *("__pycache__", "node_modules", "venv"),
    *("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"),  # YAML of other programs
)
YAML = (".yaml", ".yml")
PACK_FILES = ("pack.yaml", "pack.yml")

Found = tuple[list[Any], list[Pack]]


def load(source: str | Path | ModuleType) -> Definitions:
    """Load definitions from a module (or its name), a Python file, a package, a YAML file, a pack's folder, or a
    folder of these. Importing Python runs it.

    Raises DefinitionError that says where and what to do."""
    if isinstance(source, ModuleType):
        return Definitions(*_of_module(source))
    path = Path(source)
    if isinstance(source, str) and not path.exists() and not _looks_like_path(source):
        return Definitions(*_of_module(imported(source)))
    if not path.exists():
        raise DefinitionError(f"there is no {shown(path)}", hint=_neighbours(path))
    return Definitions(*_of_path(path.resolve()))


def load_all(sources: str) -> Definitions:
    """Return the definitions of several sources, separated by commas. An empty text has none. Raises DefinitionError if
    a source cannot be read, or a definition is not valid."""
    definitions = Definitions()
    for source in filter(None, map(str.strip, sources.split(","))):
        definitions += load(source)
    return definitions


def _looks_like_path(source: str) -> bool:
    return os.sep in source or source.endswith((".py", *YAML)) or source in (".", "..")


def _neighbours(path: Path) -> str:
    try:
        return did_you_mean(path.name, sorted(neighbour.name for neighbour in path.parent.iterdir()))
    except OSError:
        return f"Nor is there a folder {shown(path.parent)}."


def _of_path(path: Path) -> Found:
    from penstock.language.packs import read_file, read_folder

    if path.is_file():
        if path.suffix in YAML:
            return read_file(path)
        if path.suffix == ".py":
            return _of_module(imported_file(path))
        raise DefinitionError(f"{shown(path)} is neither Python nor YAML", hint="Name a .py or .yaml file.")
    if any((path / name).exists() for name in PACK_FILES):
        return read_folder(path)
    if (path / "__init__.py").exists():
        return _of_module(imported_file(path / "__init__.py"))
    items: list[Any] = []
    packs: list[Pack] = []
    with all_at_once() as problem:
        for inside in sorted(path.iterdir()):
            if may_define(inside):
                with problem():
                    inner_items, more_packs = _of_path(inside)
                    items += inner_items
                    packs += more_packs
    return items, packs


def may_define(inside: Path) -> bool:
    """Return whether this path in a folder is searched for definitions."""
    is_left_out = inside.name.startswith(".") or inside.name in SKIPPED
    return not is_left_out and (inside.is_dir() or inside.suffix in (".py", *YAML))


def _of_module(module: ModuleType) -> Found:
    modules = [module]
    if hasattr(module, "__path__"):
        inside = pkgutil.walk_packages(module.__path__, f"{module.__name__}.", onerror=_reraise)
        modules += [imported(member.name) for member in inside if not member.name.endswith(".__main__")]
    items: list[Any] = []
    ids: set[int] = set()
    packs: dict[str, Pack] = {}
    for member in modules:
        for thing in _declared(vars(member)):
            if isinstance(thing, Pack):
                packs[thing.name] = thing
            elif id(thing) not in ids:
                ids.add(id(thing))
                items.append(thing)
    # Sort by module and line: the order of the routing rules follows that of the source text.
    return sorted(items, key=_order(modules)), list(packs.values())


def _reraise(name: str) -> None:
    raise explained(name, sys.exc_info()[1] or ImportError(name)) from None


def _order(modules: list[ModuleType]) -> Any:
    files = {getattr(module, "__file__", None): n for n, module in enumerate(modules)}

    def key(item: Any) -> tuple[int, int]:
        source = getattr(item, "source", None)
        return (files.get(source.file, -1), source.line) if isinstance(source, Source) else (len(files), 0)

    return key


def _declared(names: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the declarations at the top level of a module: bound to a variable, in a list, tuple or dict, or not bound
    at all."""
    for name, value in list(names.items()):
        if name == UNBOUND or not name.startswith("__"):
            several = value.values() if isinstance(value, dict) else value
            for item in several if isinstance(value, dict | list | tuple) else (value,):
                if isinstance(item, Pack) or _is_definition(item):
                    yield item


def _is_definition(value: Any) -> bool:
    if isinstance(value, type | ModuleType):
        return False
    try:
        return value.kind in KINDS and isinstance(value.ref, str) and callable(value.document)
    except Exception:  # a foreign object may raise anything when it is inspected
        return False
