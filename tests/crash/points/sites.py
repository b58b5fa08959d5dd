"""Every call site that commits, publishes, acks, buries or broadcasts: read from the source, found again in a stack.

A site is a call in `common/` or `services/` (the command line and the like are clients of what is here). What a site
only reads is none: its SQL says so.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).parents[3]
ELSEWHERE = (
    "cli",
    "language",
    "operate/doctor",
    "testing",
    "service/embedded",
    "store/upkeep/demo.py",
    "store/schema/functions.py",
    "store/upkeep/invariants.py",
    "store/schema/migrate.py",
)
"""Below common/penstock: commands, probes of an operator and of tests, and what talks to no server."""
PRIMITIVES = ("common/penstock/store/session/database.py", "common/penstock/store/session/crash_points.py")
TRANSPORTS = "common/penstock/messaging/transports/"
READS = re.compile(r"^\s*(select|with)\b", re.IGNORECASE)
WRITES = re.compile(r"\b(insert into|update|delete from|pg_notify)\b", re.IGNORECASE)
NO_TRANSPORT = frozenset({"publisher", "_publisher", "client", "way"})
"""A publisher of the outbox publishes in a task of its own, which has a site of its own."""


@dataclass(frozen=True, slots=True)
class Site:
    """A call: where it is, and what it does (`commit`, `publish`, `ack`, `bury` or `broadcast`)."""

    file: str
    function: str
    number: int
    does: str
    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.file}:{self.function}#{self.number} ({self.does})"


@cache
def sites() -> tuple[Site, ...]:
    all_sites: list[Site] = []
    for folder in ("common/penstock", "services"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            elsewhere = any((ROOT / folder / part) in (path, *path.parents) for part in ELSEWHERE)
            if name not in PRIMITIVES and not elsewhere:
                all_sites += _of(name, path)
    return tuple(all_sites)


def _of(name: str, path: Path) -> Iterator[Site]:
    tree = ast.parse(path.read_text())
    for function, calls in _functions(tree, ""):
        number = 0
        for call, first, last in calls:
            does = _does(call, path, tree, name)
            if does is not None:
                number += 1
                yield Site(name, function, number, does, first, last)


Call = tuple[ast.Call, int, int]
"""A call, and the lines of its statement: a stack names any of them."""


def _functions(tree: ast.AST, prefix: str) -> Iterator[tuple[str, list[Call]]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef):
            calls = list(_calls(node, node.lineno, node.end_lineno or node.lineno))
            yield prefix + node.name, sorted(calls, key=lambda call: (call[0].lineno, call[0].col_offset))


def _calls(tree: ast.AST, first: int, last: int) -> Iterator[Call]:
    for node in ast.iter_child_nodes(tree):
        lines = first, last
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)  # of a statement with others inside only its head counts
            lines = node.lineno, body[0].lineno - 1 if body else node.end_lineno or node.lineno
            lines = lines[0], max(lines)
        if isinstance(node, ast.Call):
            yield node, *lines
        yield from _calls(node, *lines)


def _does(call: ast.Call, path: Path, tree: ast.Module, name: str) -> str | None:
    if isinstance(call.func, ast.Name) and call.func.id == "partial" and call.args:
        call = ast.Call(call.args[0], call.args[1:], call.keywords)  # what is called a little later
    if not isinstance(call.func, ast.Attribute):
        return None
    verb, on = call.func.attr, _last(call.func.value)
    if verb == "transaction" and not call.args and on != "connection":
        return "commit"
    if verb in ("fetch", "execute") and ("session" in on or on in ("_wake", "_put", "_take", "db")):
        return "commit" if _writes(call, path, tree) else None
    if verb == "stage_alone":
        return "commit"
    if name.startswith(TRANSPORTS):
        return None  # the rest of a transport is what the sites of others call
    if verb == "publish" and on not in NO_TRANSPORT:
        return "publish" if "transport" in on else None
    if verb in ("ack", "dead_letter") and "subscription" in on:
        return {"ack": "ack", "dead_letter": "bury"}[verb]
    return "broadcast" if verb == "broadcast" else None


def _last(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _writes(call: ast.Call, path: Path, tree: ast.Module) -> bool:
    """Return true unless the call is known to only read."""
    sql = _text(call.args[0], path, tree) if call.args else None
    if sql is None:
        return True
    called = set(re.findall(r"\b([a-z_]+)\s*\(", sql))
    return not READS.match(sql) or bool(WRITES.search(sql)) or bool(called & _volatile())


def _text(node: ast.AST, path: Path, tree: ast.Module) -> str | None:
    """The SQL that an argument stands for: a text, a constant of the module, or one of a module that it imports."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
    if isinstance(node, ast.Name):
        return _constants(path).get(node.id)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        return _text(node.func.value, path, tree)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return _constants(path.parent / f"{node.value.id}.py").get(node.attr) or _constants(
            ROOT / f"common/penstock/{node.value.id}.py"
        ).get(node.attr)
    return None


@cache
def _constants(path: Path) -> dict[str, str]:
    if not path.exists():
        return {}
    constants: dict[str, str] = {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant | ast.JoinedStr):
            parts = node.value.values if isinstance(node.value, ast.JoinedStr) else [node.value]
            text = "".join(str(part.value) for part in parts if isinstance(part, ast.Constant))
            constants |= {target.id: text for target in node.targets if isinstance(target, ast.Name)}
    return constants


@cache
def _volatile() -> frozenset[str]:
    """Functions of the database that may write: all of ours but those that say they are stable."""
    names = set()
    for path in (ROOT / "migrations/functions").rglob("*.sql"):
        pattern = r"create (?:or replace )?function (\w+)\((?:[^$]*?)\nlanguage (\w+)( stable)?"
        for name, _, stable in re.findall(pattern, path.read_text()):
            if not stable:
                names.add(name)
    return frozenset(names)


def site_of(frame: FrameType | None, what: str) -> Site | None:
    """The site that a stack came from: the innermost call that is one, of the kind that `what` is told of."""
    does = KINDS[what]
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(_PREFIX):
            for site in by_file().get(name[len(_PREFIX) :], ()):
                if site.does == does and site.first <= frame.f_lineno <= site.last:
                    return site
        frame = frame.f_back
    return None


KINDS = {
    **dict.fromkeys(("committing", "committed"), "commit"),
    **dict.fromkeys(("publishing", "written", "published"), "publish"),
    **dict.fromkeys(("acking", "acked"), "ack"),
    **dict.fromkeys(("burying", "buried"), "bury"),
    **dict.fromkeys(("broadcasting", "told"), "broadcast"),
}
_PREFIX = f"{ROOT}/"


@cache
def by_file() -> dict[str, tuple[Site, ...]]:
    grouped: dict[str, list[Site]] = {}
    for site in sites():
        grouped.setdefault(site.file, []).append(site)
    return {file: tuple(group) for file, group in grouped.items()}
