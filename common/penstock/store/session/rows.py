"""The conversion of rows into dataclasses: fields have the names of columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


def rows_as(kind: Callable[..., T], rows: Iterable[Any]) -> list[T]:
    """Return each row as an object of `kind`. Raises TypeError if columns and fields differ."""
    return [kind(**row) for row in rows]


def first_as(kind: Callable[..., T], rows: Iterable[Any]) -> T | None:
    """Return the first row as an object of `kind`; None if there is no row."""
    return next((kind(**row) for row in rows), None)


def columns_as(kind: Callable[..., T], rows: Iterable[Any]) -> list[T]:
    """Return rows as dataclasses, if the rows have more columns than the dataclass has fields."""
    names: tuple[str, ...] = kind.__slots__  # type: ignore[attr-defined]
    return [kind(*(row[name] for name in names)) for row in rows]
