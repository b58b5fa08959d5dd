"""The functions and programs of a pack, which must lie in the pack's own folder."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock.language.definitions.action import Action
from penstock.language.definitions.importing import imported_file
from penstock.language.packs.pack_files import inside
from penstock.language.terms.options import did_you_mean
from penstock.language.terms.sources import Source

_HINT = "Write module:name, as in code.orders:charge for the function charge in code/orders.py of the pack."


def function_of(entry: Any, folder: Path, source: Source) -> Callable[..., Any]:
    """Return the function `module:name` of a pack. Imports the module. Raises DefinitionError if there is no such
    function, or the import fails."""
    if not isinstance(entry, str) or entry.count(":") != 1:
        raise source.wrong("function is not module:name", _HINT)
    module, name = entry.split(":")
    steps = module.split(".")
    if not all(step.isidentifier() for step in (*steps, name)):
        raise source.wrong(f"function is not module:name: {entry!r}", _HINT)
    file = folder.joinpath(*steps)
    file = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
    inside(file, folder, source)
    member: Any = vars(imported_file(file, root=folder.parent)).get(name)
    if isinstance(member, Action):
        member = member.function
    if not inspect.isfunction(inspect.unwrap(member)) if callable(member) else True:
        raise source.wrong(f"{entry} is not a function", _functions(file, folder))
    function: Callable[..., Any] = member
    return function


def _functions(file: Path, folder: Path) -> str:
    names = vars(imported_file(file, root=folder.parent))
    return did_you_mean("", [name for name, value in names.items() if inspect.isfunction(value)])


def program_of(program: str, folder: Path, source: Source) -> None:
    """Raise DefinitionError for a program that is neither a bare name on the PATH nor a file in the pack."""
    if "/" not in program and "\\" not in program:
        return
    if Path(program).is_absolute():
        raise source.wrong(
            f"{program} lies outside of the pack",
            "Name the program alone, to be found on the worker's PATH, or put it into the pack.",
        )
    inside(folder / program, folder, source)
