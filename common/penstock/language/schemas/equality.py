"""Equality as JSON has it: 1 equals 1.0, and neither equals true."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import orjson

from penstock.language.schemas.budget import BYTES_PER_STEP, Budget

_TRUE, _FALSE = b"true", b"false"


def key(value: Any, budget: Budget | None = None) -> Hashable:
    """Return a key that is equal, and has an equal hash, for values that are equal in JSON. Containers become text: a
    sender could choose tuples of numbers with equal hashes, but not texts."""
    if value is True:
        return _TRUE
    if value is False:
        return _FALSE
    if not isinstance(value, Mapping | list):
        return value  # type: ignore[no-any-return]
    if budget is not None:
        budget.spend(_size(value, budget))
    return orjson.dumps(_plain(value), option=orjson.OPT_SORT_KEYS)


def _size(value: Any, budget: Budget) -> int:
    """Return the steps that the text of a container costs: its values and its characters."""
    steps, pending = 20, [value]
    while pending:
        node = pending.pop()
        steps += 5
        if isinstance(node, str):
            steps += len(node) // BYTES_PER_STEP
        elif isinstance(node, Mapping):
            pending.extend(node.values())
            steps += len(node)
        elif isinstance(node, list):
            pending.extend(node)
        if steps > budget.left:
            break
    return steps


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and -(2.0**63) <= value < 2.0**64:
        return int(value)
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return value
