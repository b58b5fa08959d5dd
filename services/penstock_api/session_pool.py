"""The sessions for requests that read. There are a few, and each serves one request at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from penstock.errors import ConnectionFailed
from penstock.store.session.database import Database, Session
from penstock.store.session.standby import Standby, StandbySession

SESSIONS = 4
MOST = 15.0
"""The timeout of a statement of a request, in seconds."""
PATIENCE = 30.0
"""The seconds for which a request waits for a session."""


class SessionPool:
    """A pool of sessions. A task has at most one of them: a task that keeps one and waits for another one would wait for
    ever once all sessions are with such tasks. With `standby` they read from it if possible."""

    def __init__(self, database: Database, standby: Standby | None = None) -> None:
        self._free: asyncio.LifoQueue[Session] = asyncio.LifoQueue()
        self._lent: dict[asyncio.Task[Any] | None, Session] = {}
        """The session of each task that has one."""
        for _ in range(SESSIONS):
            session = database.session(timeout=MOST)
            self._free.put_nowait(StandbySession(standby, session) if standby else session)

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Session]:
        """Lend a session to this task, for one request. A task that has a session gets the same one: outside of a
        transaction of that session, in which it would wait for itself. The most recently used session comes first, so
        that few are open when few are needed. Raises ConnectionFailed if no session is free within PATIENCE."""
        task = asyncio.current_task()
        if task in self._lent:
            yield self._lent[task]
            return
        try:
            async with asyncio.timeout(PATIENCE):
                session = await self._free.get()
        except TimeoutError:
            raise ConnectionFailed(
                f"this API has answered too many requests at once for {PATIENCE:g} seconds",
                hint="Try again later. If it happens often, run more replicas of the API.",
            ) from None
        self._lent[task] = session
        try:
            yield session
        finally:
            del self._lent[task]
            self._free.put_nowait(session)
