"""References to results in the result store. A result that is too large for the database is replaced by the small value
`{"$stored": name, "bytes": size}`. The small value can be passed on like any other value, and is resolved where it is
used.

The name contains the result's digest. So a reader cannot be given a changed result, and needs the digest to read one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

KEY = "$stored"
SIZE = "bytes"
NAME = re.compile(r"\d{4}-\d\d-\d\d/[0-9a-f-]{36}-([0-9a-f]{64})\.json")


def is_reference(value: object) -> bool:
    """Return whether this value is a reference to a stored result."""
    return (
        isinstance(value, Mapping)
        and value.keys() == {KEY, SIZE}
        and isinstance(value[SIZE], int)
        and value[SIZE] >= 0
        and isinstance(value[KEY], str)
        and NAME.fullmatch(value[KEY]) is not None
    )


def is_within(value: Any, place: Sequence[str | int]) -> bool:
    """Return whether the value at this place is a reference, or a part of one. Only its reader can tell whether the
    place exists."""
    if is_reference(value):
        return True
    for step in place:
        value = value[step]
        if is_reference(value):
            return True
    return False


def references_in(value: Any) -> list[Mapping[str, Any]]:
    """Return all references in a value, at any depth."""
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
    """Return the value with each reference replaced by the result of its name in `results`."""
    if is_reference(value):
        return results[value[KEY]]
    if isinstance(value, Mapping):
        return {name: replaced(item, results) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [replaced(item, results) for item in value]
    return value
