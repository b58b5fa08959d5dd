"""The import of modules and files, with errors that name a file and a line."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import pkgutil
import re
import sys
import traceback
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from penstock.errors import DefinitionError, PenstockError
from penstock.language.terms.options import did_you_mean
from penstock.language.terms.sources import Source, shown

_NO_NAME = re.compile(r"cannot import name '(\w+)' from '([\w.]+)'")


def imported(name: str) -> ModuleType:
    """Import and return the module of this name, from the current folder too. Raises DefinitionError if the import
    fails."""
    _reachable(os.getcwd())
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise explained(name, error) from None


def imported_file(path: Path, *, root: Path | None = None) -> ModuleType:
    """Import and return the module of a Python file. Its name counts from `root`, by default the folder around its
    outermost package. `root` is added to `sys.path`, for imports of its neighbours and for child processes.

    Raises DefinitionError if the import fails.
    """
    path = path.resolve()
    if root is None:
        root = path.parent
        while (root / "__init__.py").exists():
            root = root.parent
    steps = list(path.relative_to(root.resolve()).with_suffix("").parts)
    if steps[-1] == "__init__":
        steps.pop()
    name = ".".join(steps)
    _reachable(str(root.resolve()))
    try:
        if all(step.isidentifier() for step in steps) and _place(name) == path:
            return importlib.import_module(name)
        return _apart(path, name)
    except (Exception, SystemExit) as error:
        raise explained(shown(path), error) from None


def _reachable(folder: str) -> None:
    """Append a folder to `sys.path`. At the end, a file called `queue.py` cannot replace Python's own."""
    if folder not in sys.path:
        sys.path.append(folder)
        importlib.invalidate_caches()


def _place(name: str) -> Path | None:
    """Return the file that an import of this name would load, or None. Runs no module: the packages around the name may
    belong to another project."""
    spec = _spec(name)
    return Path(spec.origin).resolve() if spec is not None and spec.has_location and spec.origin else None


def _spec(name: str) -> ModuleSpec | None:
    """Return the spec of a module without an import of the packages around it; None if its parent is not a package, or
    Python cannot find it."""
    parent = name.rpartition(".")[0]
    if not parent or name in sys.modules:
        try:
            return importlib.util.find_spec(name)
        except (ImportError, ValueError):  # it is __main__
            return None
    if parent in sys.modules:
        folders = getattr(sys.modules[parent], "__path__", None)
    else:
        package = _spec(parent)
        folders = package.submodule_search_locations if package is not None else None
    portions: list[str] = []
    for folder in folders or ():
        finder = pkgutil.get_importer(folder)
        spec = finder.find_spec(name, None) if finder is not None else None
        if spec is not None and spec.loader is not None:
            return spec
        if spec is not None:
            portions += spec.submodule_search_locations or ()
    if not portions:
        return None
    namespace = ModuleSpec(name, None, is_package=True)
    namespace.submodule_search_locations = portions
    return namespace


def _apart(path: Path, name: str) -> ModuleType:
    """Return the module of a file, imported under a unique name. Its own name is taken, or is not a valid module name."""
    word = "".join(letter if letter.isalnum() else "_" for letter in name)
    name = f"{word}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    places = [str(path.parent)] if path.name == "__init__.py" else None
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=places)
    if spec is None or spec.loader is None:
        raise DefinitionError(f"{shown(path)} cannot be imported", hint="Give it a name that ends in .py.")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def explained(module: str, error: BaseException) -> PenstockError:
    """Return the error of a failed import, with an explanation and a place."""
    if isinstance(error, PenstockError):
        return error
    if isinstance(error, SyntaxError) and error.filename:
        line = f", at: {error.text.strip()}" if error.text and error.text.strip() else ""
        return Source(error.filename, error.lineno or 1).wrong(
            f"it is not Python: {error.msg}{line}",
            "Correct the line, or the one before it: a bracket or quote may be open.",
        )
    if isinstance(error, ModuleNotFoundError) and error.name and f"{module}.".startswith(f"{error.name}."):
        return DefinitionError(
            f"there is no module {error.name!r}",
            hint="Name a module that Python finds from here, or a file or folder, such as ./shop.py.",
        )
    hint = "The module runs when it is loaded, and must be importable by itself."
    if isinstance(error, ImportError) and (name := _NO_NAME.match(str(error))) and name[2] in sys.modules:
        loaded = sys.modules[name[2]]
        hint = did_you_mean(name[1], getattr(loaded, "__all__", dir(loaded)))
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_theirs(frame.filename)]
    place = f"{shown(frames[-1].filename)}:{frames[-1].lineno}: " if frames else ""
    return DefinitionError(
        f"{place}importing {module} failed: {type(error).__name__}: {error}",
        hint=hint,
    )


def _is_theirs(file: str) -> bool:
    """Return whether a file is the user's own code: not Penstock's, Python's or a library's."""
    ours = (str(Path(__file__).parents[2]), str(Path(importlib.__file__).parent.parent), "<frozen")
    return not file.startswith(ours) and "site-packages" not in file
