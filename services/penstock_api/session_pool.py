"""The sessions for requests that read. There are a few, and each serves one request at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from penstock.errors import ConnectionFailed
from penstock.store.session.database import Database, Session
from penstock.store.session.standby import Standby, StandbySession

SESSIONS = 4
MOST = 15.0
"""The timeout of a statement of a request, in seconds."""
PATIENCE = 30.0
"""The seconds for which a request waits for a session."""


class SessionPool:
    """A pool of sessions. With `standby` they read from it if possible."""

    def __init__(self, database: Database, standby: Standby | None = None) -> None:
        self._free: asyncio.LifoQueue[Session] = asyncio.LifoQueue()
        for _ in range(SESSIONS):
            session = database.session(timeout=MOST)
            self._free.put_nowait(StandbySession(standby, session) if standby else session)

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Session]:
        """Lend a session to one request at a time. The most recently used one comes first, so that few are open when
        few are needed. A request that has a session borrows no other one: with all of them lent to such requests, none
        would end. Raises ConnectionFailed if no session is free within PATIENCE."""
        try:
            async with asyncio.timeout(PATIENCE):
                session = await self._free.get()
        except TimeoutError:
            raise ConnectionFailed(
                f"this API has answered too many requests at once for {PATIENCE:g} seconds",
                hint="Try again later. If it happens often, run more replicas of the API.",
            ) from None
        try:
            yield session
        finally:
            self._free.put_nowait(session)
