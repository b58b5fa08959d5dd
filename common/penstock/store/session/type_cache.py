"""A cache of the type information that asyncpg needs to read and write values: type numbers and their members.
Without it, asyncpg queries them in each new session, for each statement, which takes longer than most statements: a
third of PostgreSQL's work for ten new sessions. Sessions of this process share the answers for a minute."""

from __future__ import annotations

import time
from collections.abc import Collection, Hashable
from typing import Any, NamedTuple

import asyncpg

KNOWN_FOR = 60.0
"""Seconds for which an answer is used. New sessions may read an altered type wrongly for that long, as old sessions
do. asyncpg detects that when it reads such a value, and then all types are queried again."""


class CachedTypes(NamedTuple):
    """An answer of the database about its types, and the instant at which it came."""

    types: Any
    at: float


class _Unasked:
    """A placeholder for the statement that would have queried types, so that asyncpg prepares no statement again."""

    name = "known"


_types_of_servers: dict[tuple[Hashable, frozenset[int]], CachedTypes] = {}


def place(connection: KnowingConnection) -> Hashable:
    """Return a key that is equal for connections to the same database of the same server, which share type numbers."""
    return connection._addr, connection._params.database


class KnowingConnection(asyncpg.Connection):
    """A connection that uses the cache. asyncpg has no public way to set type information, so methods that query it
    are overridden."""

    _addr: Hashable
    _params: Any

    async def _introspect_types(self, typeoids: Collection[int], timeout: float | None) -> tuple[Any, Any]:
        key = place(self), frozenset(typeoids)
        cached = _types_of_servers.get(key)
        if cached is not None and time.monotonic() - cached.at < KNOWN_FOR:
            return cached.types, _Unasked
        types, statement = await super()._introspect_types(typeoids, timeout)  # type: ignore[misc]
        _types_of_servers[key] = CachedTypes(types, time.monotonic())
        return types, statement

    async def reload_schema_state(self) -> None:
        _types_of_servers.clear()
        await super().reload_schema_state()
