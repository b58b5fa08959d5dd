"""The conversion of rows into dataclasses with fields named as the columns, in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


def rows_as(kind: Callable[..., T], rows: Iterable[Any]) -> list[T]:
    """Every row as one of these. Raises TypeError where the statement and the dataclass name different columns."""
    return [kind(**row) for row in rows]


def first_as(kind: Callable[..., T], rows: Iterable[Any]) -> T | None:
    """The first row as one of these; None where there is no row."""
    return next((kind(**row) for row in rows), None)


def columns_as(kind: Callable[..., T], rows: Iterable[Any]) -> list[T]:
    """Return rows as dataclasses, where the rows have more columns than the dataclass has fields."""
    names: tuple[str, ...] = kind.__slots__  # type: ignore[attr-defined]
    return [kind(*(row[name] for name in names)) for row in rows]
