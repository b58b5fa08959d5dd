"""The names of the package `cloaca` in a file, and the literals in it."""

from __future__ import annotations

import ast
import re
from typing import Any

PACKAGE = "cloaca"
_WORD = re.compile(r"[^a-z0-9]+")
_VALID = re.compile(r"[a-z][a-z0-9_]{0,63}")


def pack_name(text: str) -> str:
    """Return a valid name of a pack or a workflow, made from this word."""
    word = _WORD.sub("_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text).lower()).strip("_")
    return word if word[:1].isalpha() else f"p_{word}"


def task_name(id: str) -> str:
    """Return the name of a task here. An id that is valid here stays as it is."""
    return id if _VALID.fullmatch(id) else pack_name(id)


class CloacaNames:
    """The names that a file gives to the package and to what it imports from it."""

    def __init__(self) -> None:
        self._modules: set[str] = set()
        self._members: dict[str, str] = {}

    @property
    def is_imported(self) -> bool:
        return bool(self._modules or self._members)

    def read(self, tree: ast.AST) -> None:
        """Record each import of the package."""
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                self._modules |= {name.asname or name.name for name in node.names if name.name == PACKAGE}
            elif isinstance(node, ast.ImportFrom) and node.module == PACKAGE:
                self._members |= {name.asname or name.name: name.name for name in node.names}

    def is_import_of_cloaca(self, statement: ast.Import | ast.ImportFrom) -> bool:
        """Return whether a statement imports the package."""
        if isinstance(statement, ast.ImportFrom):
            return statement.module == PACKAGE
        return any(name.name == PACKAGE for name in statement.names)

    def of(self, node: ast.AST) -> str | None:
        """Return the member of the package that an expression names (`task` for `cloaca.task`), or None."""
        match node:
            case ast.Attribute(value=ast.Name(id=module), attr=member) if module in self._modules:
                return member
            case ast.Name(id=name) if name in self._members:
                return self._members[name]
            case ast.Name(id=name) if name in self._modules:
                return ""
        return None


def literal(node: ast.expr) -> Any:
    """Return the value of a literal; None for a value that is only known at run time."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def is_plain(node: ast.AST, names: CloacaNames) -> bool:
    """Return whether an expression does not use the package, so that its text can be copied."""
    return all(
        names.of(inner) is None for inner in ast.walk(node) if isinstance(inner, ast.Attribute | ast.Name)
    )
