"""References to stored results. In the place of a result that is too large for the database stands
`{"$stored": name, "bytes": size}`, which is small, may be passed on like any other value, and is read again where it is used. Its
name has a digest of what it stands for: a reader needs the digest, and a result that was changed meanwhile is not taken
for it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

KEY = "$stored"
SIZE = "bytes"
NAME = re.compile(r"\d{4}-\d\d-\d\d/[0-9a-f-]{36}-([0-9a-f]{64})\.json")


def is_reference(value: object) -> bool:
    """Return true if this value stands for a stored result."""
    return (
        isinstance(value, Mapping)
        and value.keys() == {KEY, SIZE}
        and isinstance(value[SIZE], int)
        and value[SIZE] >= 0
        and isinstance(value[KEY], str)
        and NAME.fullmatch(value[KEY]) is not None
    )


def is_within(value: Any, place: Sequence[str | int]) -> bool:
    """Return true if the value at this place is a reference, or a part of one. Only its reader can tell whether it
    fits."""
    if is_reference(value):
        return True
    for step in place:
        value = value[step]
        if is_reference(value):
            return True
    return False


def references_in(value: Any) -> list[Mapping[str, Any]]:
    """All that are in it, however deep."""
    references, pending = [], [value]
    while pending:
        node = pending.pop()
        if is_reference(node):
            references.append(node)
        elif isinstance(node, Mapping):
            pending.extend(node.values())
        elif isinstance(node, list | tuple):
            pending.extend(node)
    return references


def replaced(value: Any, results: Mapping[str, Any]) -> Any:
    """Return the value with `results`, by name, in the place of the references to them."""
    if is_reference(value):
        return results[value[KEY]]
    if isinstance(value, Mapping):
        return {name: replaced(item, results) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [replaced(item, results) for item in value]
    return value
