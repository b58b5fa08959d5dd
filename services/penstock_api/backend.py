"""The backend of the routes, one for each process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Request, Response

from penstock.client.client import Client
from penstock.client.limits import Limits
from penstock.client.schedules import Schedules
from penstock.operate.access import PREFIX, Caller, find_caller
from penstock.operate.activity import Activity, ActivityWatch
from penstock.operate.execution_tokens import EXECUTION_PREFIX, find_execution_caller
from penstock.operate.people import find_session_caller
from penstock.operate.sign_in_queue import LogInLine
from penstock.service.assembly import cancel
from penstock.settings import Settings
from penstock.store.executions.result_watch import ResultWatch
from penstock.store.session.database import Session
from penstock.store.session.standby import Standby, StandbySession
from penstock_api.live.changes import Changes
from penstock_api.live.open_pages import OpenPages
from penstock_api.live.shared_renderings import SharedLooks
from penstock_api.refused_calls import RefusedCalls
from penstock_api.session_pool import SessionPool
from penstock_api.sign_in_refusal_log import RefusedLogIns
from penstock_api.work.gateway import Gateway

KNOWN_FOR = 5.0
"""The seconds for which a token or session is cached. After that time a revoked one is refused."""
BEHIND = "Penstock-Behind"
"""The header of a list that was read from a standby: the seconds by which it may be out of date."""
MOST_KNOWN = 10_000
"""The maximum number of cached secrets. Only valid ones are cached."""


@dataclass(slots=True)
class Backend:
    settings: Settings
    client: Client
    pool: SessionPool
    reading: SessionPool
    """The sessions for lists, on the standby if there is one."""
    changes: Changes
    standby: Standby | None
    ends: ResultWatch
    looks: SharedLooks
    open_pages: OpenPages
    refused_calls: RefusedCalls
    gateway: Gateway
    find_caller: Callable[[Session, str], Awaitable[Caller | None]] = find_caller
    """The look-up of a token. A gateway alone looks up tokens of the scope `work`, and can read no others."""
    log_ins: LogInLine = field(default_factory=LogInLine)
    refused_log_ins: RefusedLogIns = field(default_factory=RefusedLogIns)
    audits: bool = True
    """False for a gateway alone, whose role may not write the audit. Such a gateway logs refused calls instead."""
    _activity: ActivityWatch = field(default_factory=ActivityWatch)
    _callers: dict[str, tuple[Caller, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, client: Client) -> Backend:
        database, settings = client.database, client.settings
        pool, ends = SessionPool(database), ResultWatch(database)
        standby = None if settings.database_read_url is None else Standby(settings, role="api")
        # A client that reads after a notified change must see the change. So both come from the same server.
        changes = Changes(StandbySession(standby, database.session()) if standby else database.session())
        reading = SessionPool(database, standby) if standby else pool
        looks = SharedLooks()
        open_pages = OpenPages(changes, looks)
        refused_calls = RefusedCalls(pool)
        gateway = Gateway(database, client.publisher)
        return cls(
            settings, client, pool, reading, changes, standby, ends, looks, open_pages, refused_calls, gateway
        )

    async def end_streams(self) -> None:
        """End the streams of all clients. They reconnect, possibly to another replica."""
        self.gateway.stop()
        await self.changes.close()
        self.open_pages.end()

    async def close(self) -> None:
        """End every watch, and disconnect from the standby."""
        self.refused_log_ins.close()
        await self.refused_calls.close()
        await self.end_streams()
        await self.gateway.close()
        await self.ends.close()
        if self.standby is not None:
            await self.standby.close()

    @property
    def behind(self) -> float | None:
        """Return the seconds by which lists may be out of date, or None if they come from the primary."""
        return self.standby.behind if self.standby is not None else None

    async def caller(self, secret: str) -> Caller | None:
        """Return the caller with this secret of a token or a session, or None if it is unknown."""
        now = asyncio.get_running_loop().time()
        cached = self._callers.get(secret)
        if cached is not None and now - cached[1] < KNOWN_FOR:
            return cached[0]
        find: Callable[[Session, str], Awaitable[Caller | None]] = find_session_caller
        if secret.startswith(EXECUTION_PREFIX):
            find = find_execution_caller
        elif secret.startswith(PREFIX):
            find = self.find_caller
        async with self.pool.session() as session:
            caller = await find(session, secret)
        if caller is None:
            self._callers.pop(secret, None)
        else:
            if len(self._callers) >= MOST_KNOWN:
                self.forget_callers()
            self._callers[secret] = (caller, now)
        return caller

    async def until_ended(self, id: UUID, seconds: float) -> None:
        """Wait for an execution to end, at most so many `seconds`, and at most until this process is asked to stop.
        Raises NotFound if no execution has this id."""
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
        """Return the number of recently ended executions, and the waiting work. All requests within a second share one
        query."""
        return await self._activity.look(self.reading.session, self.settings.stale_threshold)

    def forget_callers(self) -> None:
        """Clear the cache of tokens and sessions."""
        self._callers.clear()


def backend_of(request: Request) -> Backend:
    backend: Backend = request.app.state.backend
    return backend


async def _backend(request: Request) -> Backend:
    """Async, since FastAPI runs other dependencies in a thread."""
    return backend_of(request)


Here = Annotated[Backend, Depends(_backend)]
"""The dependency with the backend."""


async def _session(request: Request) -> AsyncIterator[Session]:
    async with backend_of(request).pool.session() as session:
        yield session


Db = Annotated[Session, Depends(_session, scope="function")]
"""The dependency with a session that is exclusive to the request until the route has returned."""


async def _reading(request: Request, response: Response) -> AsyncIterator[Session]:
    backend = backend_of(request)
    if backend.standby is not None and await backend.standby.is_near():
        response.headers[BEHIND] = f"{backend.behind:.3f}"
    async with backend.reading.session() as session:
        yield session


Lists = Annotated[Session, Depends(_reading, scope="function")]
"""The dependency with a session for data that may be slightly out of date, such as lists. The session may lead to a
standby."""


async def _limits(session: Db, request: Request) -> Limits:
    return Limits(session, backend_of(request).client.publisher)


async def _schedules(session: Db, request: Request) -> Schedules:
    return Schedules(session, backend_of(request).client.publisher)


OnLimits = Annotated[Limits, Depends(_limits, scope="function")]
OnSchedules = Annotated[Schedules, Depends(_schedules, scope="function")]
"""The dependency with the client's operations on schedules, on a session that is exclusive to the request."""
