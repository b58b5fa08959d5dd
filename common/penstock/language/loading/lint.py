"""The lint of a file, which finds all faults at once. Importing a Python module ends at its first fault. Here it is
run statement by statement, and statements that depend on a faulty one are skipped."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType

from penstock.errors import DefinitionError, PenstockError
from penstock.language.definitions.importing import explained
from penstock.language.loading.collection import Definitions
from penstock.language.loading.load import load, may_define
from penstock.language.terms.executor_names import refuse_unknown_executors
from penstock.language.terms.sources import Source, shown
from penstock.language.workflows.value_reference import CONVERTED

PLACED = re.compile(r"(?P<file>[^\s:][^:]*):(?P<line>\d+)(?::(?P<column>\d+))?: (?P<message>.*)")


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault, or a warning of a possible fault. `file` and `line` are None if it has no place."""

    message: str
    file: str | None = None
    line: int | None = None
    hint: str | None = None
    is_warning: bool = False

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: " if self.file else ""
        return place + self.message


def lint(source: str) -> tuple[Definitions, list[Fault]]:
    """Return the faultless definitions of a file, folder, module or pack, the faults of all other definitions in it, and
    warnings."""
    places: list[Source] = []
    token = CONVERTED.set(places)
    try:
        definitions, faults = _read(source)
    finally:
        CONVERTED.reset(token)
    return definitions, [*faults, *map(_converted, places)]


def _converted(place: Source) -> Fault:
    """Return the warning for `str(...)` of a reference that is passed as a value."""
    return Fault(
        "`str(...)` of a reference is the value itself, of any type: the text is only known when the workflow runs",
        shown(place.file),
        place.line,
        "Write value | 'string' for its text, or the value alone.",
        is_warning=True,
    )


def _read(source: str) -> tuple[Definitions, list[Fault]]:
    path = Path(source)
    if path.is_dir() and not any((path / name).exists() for name in ("pack.yaml", "pack.yml", "__init__.py")):
        return _folder(path)
    if path.suffix == ".py" and path.is_file():
        return _python(path)
    try:
        return load(source), []
    except PenstockError as error:
        return Definitions(), _faults(error)


def check(definitions: Definitions, executors: Collection[str] | None) -> list[Fault]:
    """Return the faults of references and expressions: references to neither these definitions nor the task executors,
    wrong parameters, and expressions with names that will not exist.

    `executors` are those that the settings name. None if other definitions may exist: then a reference may lead to any."""
    faults = []
    looks: list[Callable[[], None]] = [partial(definitions.check, accept_unknown=executors is None)]
    if executors is not None:
        looks.append(partial(refuse_unknown_executors, definitions.actions.values(), executors))
    for look in looks:
        try:
            look()
        except DefinitionError as error:
            faults += _faults(error)
    return faults


def joined(parts: list[Definitions]) -> tuple[Definitions, list[Fault]]:
    """Return all definitions as one set, and the faults of refs that are declared twice."""
    whole, faults = Definitions(), []
    for part in parts:
        try:
            whole += part
        except DefinitionError as error:
            faults += _faults(error)
    return whole, faults


def _folder(path: Path) -> tuple[Definitions, list[Fault]]:
    parts, faults = [], []
    for inside in sorted(path.iterdir()):
        if may_define(inside) and not inside.name.startswith("_"):
            part, wrong = _read(str(inside))
            parts.append(part)
            faults += wrong
    whole, twice = joined(parts)
    return whole, faults + twice


def _python(path: Path) -> tuple[Definitions, list[Fault]]:
    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except SyntaxError as error:
        error.filename = error.filename or str(path)
        return Definitions(), _faults(explained(shown(path), error))
    module = ModuleType(f"penstock_lint_{path.stem}")
    module.__file__ = str(path.resolve())
    faults: list[Fault] = []
    with _importable(module, path):
        _run(tree, module, path, faults)
        try:
            return load(module), faults
        except DefinitionError as error:
            return Definitions(), faults + _faults(error)


@contextmanager
def _importable(module: ModuleType, path: Path) -> Iterator[None]:
    sys.modules[module.__name__] = module
    sys.path.append(str(path.resolve().parent))
    try:
        yield
    finally:
        sys.path.remove(str(path.resolve().parent))
        del sys.modules[module.__name__]


def _run(tree: ast.Module, module: ModuleType, path: Path, faults: list[Fault]) -> None:
    """Run the statements one by one, and collect their faults. A statement that uses names of a faulty one is skipped,
    since it would fail for the same reason."""
    futures = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    unusable: set[str] = set()
    for node in tree.body:
        used = {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
        if not unusable.isdisjoint(used):
            unusable |= _defined(node)
            continue
        unit = ast.Module(
            body=[*(statement for statement in futures if statement is not node), node], type_ignores=[]
        )
        try:
            exec(compile(unit, str(path.resolve()), "exec"), vars(module))
        except (Exception, SystemExit) as error:
            faults += _faults(explained(shown(path), error))
            unusable |= _defined(node)


def _defined(node: ast.stmt) -> set[str]:
    """Return the names that a statement binds."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {(name.asname or name.name).partition(".")[0] for name in node.names}
    return {
        name.id for name in ast.walk(node) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
    }


def _faults(error: PenstockError) -> list[Fault]:
    """Return a fault for each line of an error."""
    lines = error.message.splitlines()
    faults = []
    for text in lines:
        placed = PLACED.fullmatch(text)
        hint = error.hint if len(lines) == 1 else None
        if placed:
            faults.append(Fault(placed["message"], placed["file"], int(placed["line"]), hint))
        else:
            faults.append(Fault(text, hint=hint))
    return faults
