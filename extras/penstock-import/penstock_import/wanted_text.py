"""Parts of translated expressions. Each is written so that it can be an operand anywhere."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from penstock.language.expressions import MAPPING_METHODS, STR_METHODS

_METHODS = MAPPING_METHODS.keys() | STR_METHODS.keys()
_WORDS = frozenset(
    {"and", "or", "not", "in", "is", "if", "else", "true", "false", "none", "True", "False", "None"}
)


class NotMapped(Exception):
    """Raised for a part without an equivalent in Penstock. Its text is the reason."""


@dataclass(frozen=True, slots=True)
class Ours:
    """A translated expression. `kind` is the certain type of its value: int, number, str, bool, none, list or dict.
    `kind` is empty if the type is only known at run time."""

    text: str
    kind: str = ""


def literal(value: Any) -> Ours:
    """Return a value as a literal. Raises NotMapped if it has no literal."""
    if value is None:
        return Ours("none", "none")
    if isinstance(value, bool):
        return Ours("true" if value else "false", "bool")
    if isinstance(value, str):
        return Ours(json.dumps(value, ensure_ascii=False), "str")
    if isinstance(value, int):
        return Ours(str(value) if value >= 0 else f"({value})", "int")
    if isinstance(value, float) and value == value and abs(value) != float("inf"):
        return Ours(_decimal(value), "number")
    if isinstance(value, list | tuple):
        return Ours(f"[{', '.join(literal(item).text for item in value)}]", "list")
    if isinstance(value, dict):
        pairs = ", ".join(f"{literal(key).text}: {literal(item).text}" for key, item in value.items())
        return Ours(f"{{{pairs}}}", "dict")
    raise NotMapped(f"a literal of the type {type(value).__name__}")


def _decimal(value: float) -> str:
    text = repr(value)
    return text if value >= 0 else f"({text})"


def member(value: str, name: str) -> str:
    """Return the text of `value.name`, which reads a key of a mapping and never a method."""
    if name.isidentifier() and name.isascii() and name not in _METHODS | _WORDS and not name.startswith("__"):
        return f"{value}.{name}"
    return f"{value}[{json.dumps(name, ensure_ascii=False)}]"
