"""The sessions for requests that read. There are a few, and each serves one request at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from penstock.errors import ConnectionFailed
from penstock.store.session.database import Database, Session
from penstock.store.session.standby import Standby, StandbySession

SESSIONS = 4
MOST = 15.0
"""The timeout of a statement of a request, in seconds."""
PATIENCE = 30.0
"""The seconds for which a request waits for a session."""


@dataclass(slots=True)
class _Loan:
    """The session that a request has. None once the request has returned it."""

    session: Session | None


_LOANS: ContextVar[Mapping[SessionPool, _Loan]] = ContextVar("loans")
"""The loans of the current request, by pool. A task that a request has started inherits them, and may outlive them."""


class SessionPool:
    """A pool of sessions. With `standby` they read from it if possible."""

    def __init__(self, database: Database, standby: Standby | None = None) -> None:
        self._free: asyncio.LifoQueue[Session] = asyncio.LifoQueue()
        for _ in range(SESSIONS):
            session = database.session(timeout=MOST)
            self._free.put_nowait(StandbySession(standby, session) if standby else session)

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Session]:
        """Lend a session to one request at a time. The most recently used one comes first, so that few are open when few
        are needed.

        A request that has one gets the same one: if each request kept a session and waited for a second one, none would
        end. Raises ConnectionFailed if no session is free within PATIENCE.
        """
        loans = _LOANS.get({})
        if self in loans and (session := loans[self].session) is not None:
            yield session
            return
        try:
            async with asyncio.timeout(PATIENCE):
                session = await self._free.get()
        except TimeoutError:
            raise ConnectionFailed(
                f"this API has answered too many requests at once for {PATIENCE:g} seconds",
                hint="Try again later. If it happens often, run more replicas of the API.",
            ) from None
        loan = _Loan(session)
        _LOANS.set({**loans, self: loan})
        try:
            yield session
        finally:
            loan.session = None
            self._free.put_nowait(session)
