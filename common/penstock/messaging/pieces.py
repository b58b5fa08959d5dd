"""The division of writes into pieces, so that large bodies are not in memory many times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")

PIECE = 4 * 1024 * 1024
"""Bytes of bodies that are written at once; a single larger body is a piece, too."""


def pieces(items: Sequence[Item], size_of: Callable[[Item], int]) -> Iterator[Sequence[Item]]:
    """Yield `items` in order, in pieces of at most PIECE bytes or of one item."""
    start = size = 0
    for end, item in enumerate(items):
        size += size_of(item)
        if size > PIECE and end > start:
            yield items[start:end]
            start, size = end, size_of(item)
    if items:
        yield items[start:]
