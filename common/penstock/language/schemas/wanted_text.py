"""The question whether a value fits its schema only as text, although it was typed as a number, true, false or null."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.errors import CheckTooCostly
from penstock.language.schemas.budget import Budget
from penstock.language.schemas.secrets import applying, of_step

_TYPES: Mapping[type, Sequence[str]] = {
    bool: ("boolean",), int: ("integer", "number"), float: ("number",), type(None): ("null",), list: ("array",),
    dict: ("object",),
}  # fmt: skip


def wants_text(value: Any, path: Sequence[str | int], root: Mapping[str, Any]) -> bool:
    """Return whether `root` permits a text at `path`, and no value of the type of `value`."""
    try:
        types = _types_at(path, root)
    except (CheckTooCostly, RecursionError):
        return False
    return "string" in types and not types.intersection(_TYPES.get(type(value), ("string",)))


def _types_at(path: Sequence[str | int], root: Mapping[str, Any]) -> set[str]:
    """Return the types that the schemas at `path` declare. A schema without a type declares none."""
    schemas: list[Any] = [root]
    budget = Budget()
    for step in path:
        parts = list(applying(schemas, root, budget))
        schemas = [schema for part in parts for schema in of_step(part, step, budget)]
    declared = [part["type"] for part in applying(schemas, root, budget) if "type" in part]
    return {name for names in declared for name in ([names] if isinstance(names, str) else names)}
