"""The reload of definitions from changed files."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from penstock.language.loading.collection import Definitions
from penstock.language.loading.load import load_all


def folders_of(sources: Sequence[str]) -> list[Path]:
    """Return the folders of the modules, files and packs of these sources, which must be loaded already."""
    folders = []
    for source in sources:
        path = Path(source)
        if path.exists():
            folders.append(path if path.is_dir() else path.parent)
        elif (file := getattr(sys.modules.get(source), "__file__", None)) is not None:
            folders.append(Path(file).parent)
    return list(dict.fromkeys(folder.resolve() for folder in folders))


def reload_all(sources: Sequence[str], folders: Sequence[Path]) -> Definitions:
    """Return the definitions of these sources, read again from their files. All modules from these folders are imported
    again; running code keeps the old ones. If a module cannot be loaded, restores the old modules and raises
    DefinitionError."""
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
    """Return whether a module is the user's own. Libraries below the folders (such as .venv) are not."""
    if file is None:
        return False
    path = Path(file)
    ours = Path(__file__).parents[2]  # Penstock's own modules lie below the folders in a checkout of Penstock
    return (
        "site-packages" not in path.parts
        and not path.is_relative_to(ours)
        and any(path.is_relative_to(folder) for folder in folders)
    )
