"""Rows of the database with their sealed values open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import asyncpg

from penstock.store.session.sealed_marks import KEY, looks_sealed
from penstock.store.session.sealed_values import Ring, opened


class OpenedRow:
    """A row or a composite value with replaced values. It has the interface of the driver's rows."""

    __slots__ = ("_names", "_values")

    def __init__(self, names: Sequence[str], values: Sequence[Any]) -> None:
        self._names = names
        self._values = tuple(values)

    def __getitem__(self, key: int | slice | str) -> Any:
        return self._values[self._names.index(key) if isinstance(key, str) else key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def keys(self) -> Sequence[str]:
        return self._names

    def values(self) -> Sequence[Any]:
        return self._values

    def items(self) -> Iterator[tuple[str, Any]]:
        return zip(self._names, self._values, strict=True)

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self._names else default


def is_sealed(value: Any) -> bool:
    """Return whether a value of a row may contain a sealed value."""
    # A process with a master key calls this for each value of each row.
    kind = type(value)
    if kind is str or kind is bytes:
        return looks_sealed(value)
    if kind is list or kind is asyncpg.Record:
        for item in value:
            kind = type(item)
            if kind is str:
                if KEY in item:
                    return True
            elif (kind is list or kind is asyncpg.Record or kind is bytes) and is_sealed(item):
                return True
    return False


def opened_row(ring: Ring, row: Any, tenant: str | None = None) -> Any:
    """Return a row with its sealed values open. A row that names its tenant or namespace opens for that tenant only.
    Raises Unknown for a value under a data key that `ring` does not have."""
    if not is_sealed(row):
        return row
    names = list(row.keys())
    values = list(row)
    own = dict(zip(names, values, strict=True))
    if isinstance(own.get("namespace"), str):
        tenant = own["namespace"].partition("::")[0]
    elif isinstance(own.get("tenant"), str):
        tenant = own["tenant"]
    return OpenedRow(names, [_opened(ring, value, tenant) for value in values])


def _opened(ring: Ring, value: Any, tenant: str | None) -> Any:
    if isinstance(value, str | bytes):
        return opened(ring, value, tenant) if looks_sealed(value) else value
    if isinstance(value, list):
        return [_opened(ring, item, tenant) for item in value]
    if isinstance(value, asyncpg.Record):
        return opened_row(ring, value, tenant)
    return value
