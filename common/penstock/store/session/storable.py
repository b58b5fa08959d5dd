"""The conversion of foreign values into values that PostgreSQL can store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

REPLACEMENT = "\ufffd"
"""The character that replaces one that PostgreSQL cannot store."""


def storable(value: object, depth: int = 20) -> Any:
    """Return a value that PostgreSQL can store in place of `value`. The function is for values that are only kept, such
    as a header of a foreign message or a reason. NUL and lone surrogates become U+FFFD. A value that is not JSON, too
    large or too deep becomes a text."""
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else f"an integer of {value.bit_length()} bits"
    if depth == 0:
        return "nests too deep"
    if isinstance(value, Mapping):
        return {storable(str(name)): storable(item, depth - 1) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable(item, depth - 1) for item in value]
    return str(value).replace("\0", REPLACEMENT).encode(errors="replace").decode()
