"""The backend that the routes work with: one for each process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Request, Response

from penstock.client.client import Client
from penstock.client.limits import Limits
from penstock.client.schedules import Schedules
from penstock.operate.access import PREFIX, Caller, find_caller
from penstock.operate.activity import Activity, ActivityWatch
from penstock.operate.log_in_line import LogInLine
from penstock.operate.people import find_session_caller
from penstock.service.assembly import cancel
from penstock.settings import Settings
from penstock.store.executions.result_watch import ResultWatch
from penstock.store.session.database import Session
from penstock.store.session.standby import Standby, StandbySession
from penstock_api.live.changes import Changes
from penstock_api.live.open_pages import OpenPages
from penstock_api.live.shared_looks import SharedLooks
from penstock_api.refused_calls import RefusedCalls
from penstock_api.refused_log_ins import RefusedLogIns
from penstock_api.session_pool import SessionPool

KNOWN_FOR = 5.0
"""Seconds for which a token or a session that was looked up is believed: after so long one that was revoked is refused."""
BEHIND = "Penstock-Behind"
"""The header of a list that was read from a standby: seconds that it is old at the most."""
MOST_KNOWN = 10_000
"""Secrets that are remembered, real ones alone."""


@dataclass(slots=True)
class Backend:
    settings: Settings
    client: Client
    pool: SessionPool
    reading: SessionPool
    """For lists: from the standby, where there is one."""
    changes: Changes
    standby: Standby | None
    ends: ResultWatch
    looks: SharedLooks
    open_pages: OpenPages
    refused_calls: RefusedCalls
    log_ins: LogInLine = field(default_factory=LogInLine)
    refused_log_ins: RefusedLogIns = field(default_factory=RefusedLogIns)
    _activity: ActivityWatch = field(default_factory=ActivityWatch)
    _known: dict[str, tuple[Caller, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, client: Client) -> Backend:
        database, settings = client.database, client.settings
        pool, ends = SessionPool(database), ResultWatch(database)
        standby = None if settings.database_read_url is None else Standby(settings, role="api")
        # A client that looks after a notice of a change sees it: both are read from the same server.
        changes = Changes(StandbySession(standby, database.session()) if standby else database.session())
        reading = SessionPool(database, standby) if standby else pool
        looks = SharedLooks()
        open_pages = OpenPages(changes, looks)
        refused_calls = RefusedCalls(pool)
        return cls(settings, client, pool, reading, changes, standby, ends, looks, open_pages, refused_calls)

    async def end_streams(self) -> None:
        """End the streams of all clients. They connect again, to another replica perhaps."""
        await self.changes.close()
        self.open_pages.end()

    async def close(self) -> None:
        """End every watch, and leave the standby."""
        self.refused_log_ins.close()
        await self.refused_calls.close()
        await self.end_streams()
        await self.ends.close()
        if self.standby is not None:
            await self.standby.close()

    @property
    def behind(self) -> float | None:
        """Seconds that lists are old at the most; None where they are the primary's."""
        return self.standby.behind if self.standby is not None else None

    async def caller(self, secret: str) -> Caller | None:
        """Return the caller with this secret of a token or a session; None where it has no owner."""
        now = asyncio.get_running_loop().time()
        cached = self._known.get(secret)
        if cached is not None and now - cached[1] < KNOWN_FOR:
            return cached[0]
        find = find_caller if secret.startswith(PREFIX) else find_session_caller
        async with self.pool.session() as session:
            caller = await find(session, secret)
        if caller is None:
            self._known.pop(secret, None)
        else:
            if len(self._known) >= MOST_KNOWN:
                self.forget_callers()
            self._known[secret] = (caller, now)
        return caller

    async def until_ended(self, id: UUID, seconds: float) -> None:
        """Wait for an execution to end, for so long at the most, and until this process is asked to stop. Raises NotFound."""
        end = asyncio.ensure_future(self.ends.ended(id))
        stopping = asyncio.ensure_future(self.changes.closed.wait())
        try:
            await asyncio.wait({end, stopping}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if end.done():
                end.result()
        finally:
            stopping.cancel()
            await cancel(end)

    async def look_at_activity(self) -> Activity:
        """Return the number of recent ends, and the waits. All requests within a second share one query."""
        return await self._activity.look(self.reading.session, self.settings.stale_threshold)

    def forget_callers(self) -> None:
        """Look every token up anew."""
        self._known.clear()


def backend_of(request: Request) -> Backend:
    backend: Backend = request.app.state.backend
    return backend


async def _backend(request: Request) -> Backend:
    """Async, as one that is not runs in a thread."""
    return backend_of(request)


Here = Annotated[Backend, Depends(_backend)]
"""The backend, for a route."""


async def _session(request: Request) -> AsyncIterator[Session]:
    async with backend_of(request).pool.session() as session:
        yield session


Db = Annotated[Session, Depends(_session, scope="function")]
"""A session that nobody else uses until the route has returned."""


async def _reading(request: Request, response: Response) -> AsyncIterator[Session]:
    backend = backend_of(request)
    if backend.standby is not None and await backend.standby.is_near():
        response.headers[BEHIND] = f"{backend.behind:.3f}"
    async with backend.reading.session() as session:
        yield session


Lists = Annotated[Session, Depends(_reading, scope="function")]
"""The same for what may be a moment old, as lists are: it may lead to a standby."""


async def _limits(session: Db, request: Request) -> Limits:
    return Limits(session, backend_of(request).client.publisher)


async def _schedules(session: Db, request: Request) -> Schedules:
    return Schedules(session, backend_of(request).client.publisher)


OnLimits = Annotated[Limits, Depends(_limits, scope="function")]
OnSchedules = Annotated[Schedules, Depends(_schedules, scope="function")]
"""What a client can do with limits, and with schedules, on a session that nobody else uses meanwhile."""
