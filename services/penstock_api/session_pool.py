"""Sessions for requests that read: a few, each used by one request at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from penstock.store.session.database import Database, Session
from penstock.store.session.standby import Standby, StandbySession

SESSIONS = 4
MOST = 15.0
"""Seconds that a statement of a request may take."""


class SessionPool:
    """`standby`: read from it where that is possible."""

    def __init__(self, database: Database, standby: Standby | None = None) -> None:
        self._free: asyncio.LifoQueue[Session] = asyncio.LifoQueue()
        for _ in range(SESSIONS):
            session = database.session(most=MOST)
            self._free.put_nowait(StandbySession(standby, session) if standby else session)

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Session]:
        """Lend a session to one user at a time. The one that was used last comes first, so few are open where few are
        needed."""
        session = await self._free.get()
        try:
            yield session
        finally:
            self._free.put_nowait(session)
