"""The listener for notifications about awaited ends. It has a connection of its own while a caller waits."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import asyncpg

from penstock.errors import ConnectionFailed
from penstock.language.terms.ids import new_id
from penstock.store.executions import awaited
from penstock.store.executions.awaited import Told
from penstock.store.session.database import Database, Row


class ToldEnds:
    """A listener that calls `heard` with each notification."""

    def __init__(self, database: Database, heard: Callable[[Told], None]) -> None:
        self._database = database
        self._heard = heard
        self._connection: asyncpg.Connection[Row] | None = None
        self.watcher = new_id()

    @property
    def listens(self) -> bool:
        return self._connection is not None and not self._connection.is_closed()

    async def open(self) -> None:
        """Listen, if possible: not behind a pooler, nor if PostgreSQL has no free connection."""
        if self.listens or self._database.settings.database_pooler:
            return
        with contextlib.suppress(ConnectionFailed, asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
            self._connection = await self._database.connect()
            await awaited.listen(self._connection, self.watcher, self._heard)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None
