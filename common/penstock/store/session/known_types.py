"""The type information of the database that asyncpg needs before it can read and write values: type numbers and their
members. By itself each new session asks for it, for each of its statements: that takes longer than most of them, and
all that PostgreSQL does for ten new sessions is a third of it. What one session of this process was told the others
know, for a minute."""

from __future__ import annotations

import time
from collections.abc import Collection, Hashable
from typing import Any, NamedTuple

import asyncpg

KNOWN_FOR = 60.0
"""Seconds. A type that is altered meanwhile is read wrongly by new sessions for so long at the most, as by old ones; asyncpg
sees that by itself when it reads one, and then all is asked for anew."""


class Told(NamedTuple):
    types: Any
    at: float


class _Unasked:
    """In place of the statement that would have asked: no other one has to be prepared anew for it."""

    name = "known"


_told: dict[tuple[Hashable, frozenset[int]], Told] = {}


def place(connection: KnowingConnection) -> Hashable:
    """Return a key of the servers that share type numbers."""
    return connection._addr, connection._params.database


class KnowingConnection(asyncpg.Connection):
    """asyncpg has no public way to say what a type is made of; what is overridden here is what it asks by itself."""

    _addr: Hashable
    _params: Any

    async def _introspect_types(self, typeoids: Collection[int], timeout: float | None) -> tuple[Any, Any]:
        key = place(self), frozenset(typeoids)
        cached = _told.get(key)
        if cached is not None and time.monotonic() - cached.at < KNOWN_FOR:
            return cached.types, _Unasked
        types, statement = await super()._introspect_types(typeoids, timeout)  # type: ignore[misc]
        _told[key] = Told(types, time.monotonic())
        return types, statement

    async def reload_schema_state(self) -> None:
        _told.clear()
        await super().reload_schema_state()
