"""Cuts what is to be written at once, so that large bodies are not many times in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")

PIECE = 4 * 1024 * 1024
"""Bytes of bodies that are written at once, or one body."""


def pieces(items: Sequence[Item], size_of: Callable[[Item], int]) -> Iterator[Sequence[Item]]:
    """`items` in order, cut where they get too many bytes for one piece."""
    start = size = 0
    for end, item in enumerate(items):
        size += size_of(item)
        if size > PIECE and end > start:
            yield items[start:end]
            start, size = end, size_of(item)
    if items:
        yield items[start:]
