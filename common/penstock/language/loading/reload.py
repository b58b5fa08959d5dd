"""Loading definitions once more, after their files have changed."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from penstock.language.loading.collection import Definitions
from penstock.language.loading.load import load_all


def folders_of(sources: Sequence[str]) -> list[Path]:
    """Return the folders of these sources, once they have been loaded: those of modules, of files and of packs."""
    folders = []
    for source in sources:
        path = Path(source)
        if path.exists():
            folders.append(path if path.is_dir() else path.parent)
        elif (file := getattr(sys.modules.get(source), "__file__", None)) is not None:
            folders.append(Path(file).parent)
    return list(dict.fromkeys(folder.resolve() for folder in folders))


def reload_all(sources: Sequence[str], folders: Sequence[Path]) -> Definitions:
    """The definitions of these sources as their files are now. Everything that was imported from these folders is imported
    anew; what runs goes on with what it has. Raises DefinitionError; then the modules of before are in place again."""
    old_modules = _imported_from(folders)
    for name in old_modules:
        del sys.modules[name]
    importlib.invalidate_caches()
    try:
        return load_all(",".join(sources))
    except BaseException:
        for name in _imported_from(folders):
            del sys.modules[name]
        sys.modules.update(old_modules)
        raise


def _imported_from(folders: Sequence[Path]) -> dict[str, ModuleType]:
    return {
        name: module
        for name, module in list(sys.modules.items())
        if name != "__main__" and _is_inside(getattr(module, "__file__", None), folders)
    }


def _is_inside(file: str | None, folders: Sequence[Path]) -> bool:
    """Return true if a module is the user's own. Libraries below the folder (.venv) are not."""
    if file is None:
        return False
    path = Path(file)
    ours = Path(__file__).parents[2]  # of contributors to Penstock itself
    return (
        "site-packages" not in path.parts
        and not path.is_relative_to(ours)
        and any(path.is_relative_to(folder) for folder in folders)
    )
