"""The conversion of literal texts to the types of parameters, as StackStorm does it before an action starts."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from penstock_import.wanted_text import NotMapped


def cast_literal(value: str, kind: Any) -> Any:
    """Return a text as the type that the action declares for the parameter, as StackStorm converts it. Raises NotMapped for
    a text that StackStorm refuses."""
    kinds = [part for part in (kind if isinstance(kind, list) else [kind]) if part != "null"]
    if len(kinds) != 1 or kinds[0] not in _CASTS:
        return value
    convert, types = _CASTS[kinds[0]]
    try:
        converted = convert(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        converted = None
    is_sound = type(converted) in types and not (
        isinstance(converted, float) and not math.isfinite(converted)
    )
    if not is_sound or any(mark in str(converted) for mark in ("{{", "{%", "{#")):
        raise NotMapped(f"a text that StackStorm does not convert to the type {kinds[0]}")
    return converted


def may_become_another_type(value: Any) -> bool:
    """Return whether a value is a text that StackStorm would convert for a parameter of some other type."""
    if not isinstance(value, str) or any(mark in value for mark in ("{{", "{%", "<%")):
        return False
    for kind in _CASTS:
        with suppress(NotMapped):
            cast_literal(value, kind)
            return True
    return False


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return ast.literal_eval(text)


_CASTS: dict[str, tuple[Callable[[str], Any], tuple[type, ...]]] = {
    "integer": (int, (int,)),
    "number": (float, (float,)),
    "boolean": (lambda text: ast.literal_eval(text.capitalize()), (bool,)),
    "array": (_parsed, (list,)),
    "object": (_parsed, (dict,)),
}
"""How StackStorm converts a text to the type of a parameter, and the types of Python that the value may have then."""
