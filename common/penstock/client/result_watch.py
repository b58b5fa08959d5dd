"""Waiting for results: whoever ends what is awaited tells this process, which then looks for all who wait, in one query.

It also looks now and then: a hint is lost with the connection or the process that had it to send, and none comes by a pooler.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any
from uuid import UUID

import asyncpg
import orjson

from penstock.errors import ExecutionFailed, NotFound
from penstock.ids import new_id
from penstock.moves import COMPLETED
from penstock.store import awaited, executions
from penstock.store.database import Database, Row, retried
from penstock.store.executions import ExecutionEnd
from penstock.store.queues import AWAITED

FIRST, MOST = 0.01, 1.0
"""Seconds between looks when nobody tells anything: soon after a waiter came, for what was ending just then; rarer later."""
OUTAGE = 60.0
"""Seconds without an answer from PostgreSQL after which whoever waits is told so. They may wait again."""
GONE = 1.0
"""Seconds after which ids that no table knows are looked for in the archive, and then given up."""


class ResultWatch:
    """Waits for all awaited executions at once, on a session of its own."""

    def __init__(self, database: Database) -> None:
        self._channel = AWAITED + new_id().hex
        self._session = database.session(relaxed=True, opened=self._opened)
        self._waiting: dict[UUID, list[asyncio.Future[ExecutionEnd]]] = {}
        self._registered: set[UUID] = set()
        self._looking: asyncio.Task[None] | None = None
        self._woken = asyncio.Event()
        self._began = False

    async def _opened(self, connection: asyncpg.Connection[Row]) -> None:
        if not self._session.pooler:  # whose sessions go to somebody else after each transaction
            await awaited.listen(connection, self._channel, self._woken.set)

    async def result(self, id: UUID, *, timeout: float | None = None) -> Any:
        """The result of an execution once it has ended. Raises ExecutionFailed, NotFound, TimeoutError, and what PostgreSQL
        says when it has not answered for OUTAGE seconds."""
        async with asyncio.timeout(timeout):
            row = await self.ended(id)
        if row.status == COMPLETED:
            return orjson.loads(row.result) if row.result is not None else None
        error = orjson.loads(row.error) if row.error is not None else {}
        raise ExecutionFailed(
            f"execution {id} ended as {row.status}: {error.get('type', '')}: {error.get('message', '')}".rstrip(
                ": "
            ),
            hint=f"`penstock show {id}` tells what happened.",
            execution_id=id,
            status=row.status,
        )

    async def ended(self, id: UUID) -> ExecutionEnd:
        """The row of an execution once it has ended (id, status, result, error as JSON text)."""
        id = UUID(str(id))  # an id that came as text would never be found among those that have ended
        future: asyncio.Future[ExecutionEnd] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(id, []).append(future)
        self._woken.set()
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._watch(), name="watch")
        try:
            return await future
        finally:
            futures = self._waiting.get(id)
            if futures is not None and future in futures:
                futures.remove(future)
                if not futures:
                    del self._waiting[id]

    async def _watch(self) -> None:
        """Look until nobody waits any more. What ends this early is told to all who wait: nobody else would look for them."""
        try:
            await self._look()
        except Exception as error:
            waiting, self._waiting = self._waiting, {}
            for future in (future for futures in waiting.values() for future in futures):
                if not future.done():
                    future.set_exception(error)

    async def _look(self) -> None:
        loop = asyncio.get_running_loop()
        pause, told = FIRST, loop.time()
        while self._waiting:
            self._woken.clear()
            rows = await retried(
                lambda: executions.finished(self._session, list(self._waiting)), deadline=OUTAGE
            )
            for row in rows:
                self._resolve(row.id, row)
            if await self._register():
                pause, told = FIRST, loop.time()
                continue  # what ended meanwhile was told to nobody
            if rows:
                pause, told = FIRST, loop.time()
            elif loop.time() - told > GONE:
                await self._find_gone()
                told = loop.time()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._woken.wait()
            pause = min(MOST, pause * 2)

    async def _register(self) -> bool:
        """Be told of the ends of those that somebody has come to wait for. Says whether there are any."""
        self._registered &= self._waiting.keys()
        new = [] if self._session.pooler else [id for id in self._waiting if id not in self._registered]
        if new:
            await retried(lambda: awaited.register(self._session, new, self._channel), deadline=OUTAGE)
            self._registered.update(new)
            self._began = True
        return bool(new)

    async def _find_gone(self) -> None:
        """Executions that are not in the hot table any more, or never were."""
        found = await retried(lambda: executions.find(self._session, list(self._waiting)), deadline=OUTAGE)
        rows = {row.id: row for row in found}
        for id in list(self._waiting):
            row = rows.get(id)
            if row is None:
                missing = NotFound(f"no execution {id}", hint="It may be older than the archive's retention.")
                for future in self._waiting.pop(id, []):
                    if not future.done():
                        future.set_exception(missing)
            elif row.finished_at is not None:
                self._resolve(id, ExecutionEnd(id, row.status, row.result, row.error))

    def _resolve(self, id: UUID, row: ExecutionEnd) -> None:
        for future in self._waiting.pop(id, []):
            if not future.done():
                future.set_result(row)

    async def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._looking
        if self._began:
            with contextlib.suppress(Exception):  # what is left is dropped with its age
                async with asyncio.timeout(1):
                    await awaited.forget(self._session, self._channel)
