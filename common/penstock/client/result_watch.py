"""Waiting for results: one batched query for everybody who waits in this process, never a poll per waiter."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import orjson

from penstock.errors import ExecutionFailed, NotFound
from penstock.language.moves import COMPLETED
from penstock.store import executions
from penstock.store.database import Session, retried
from penstock.store.executions import ExecutionEnd

FIRST, MOST = 0.01, 1.0
"""Seconds between looks: soon after a waiter came or something ended, rarer while nothing happens."""
OUTAGE = 60.0
"""Seconds without an answer from PostgreSQL after which whoever waits is told so. They may wait again."""
GONE = 1.0
"""Seconds after which ids that no table knows are looked for in the archive, and then given up."""


class ResultWatch:
    """Looks for all awaited executions at once."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._waiting: dict[UUID, list[asyncio.Future[ExecutionEnd]]] = {}
        self._looking: asyncio.Task[None] | None = None
        self._came = asyncio.Event()

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
        self._came.set()
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
        pause, quiet = FIRST, 0.0
        while self._waiting:
            self._came.clear()
            rows = await retried(
                lambda: executions.finished(self._session, list(self._waiting)), deadline=OUTAGE
            )
            for row in rows:
                self._resolve(row.id, row)
            quiet = 0.0 if rows else quiet + pause
            if quiet > GONE:
                await self._find_gone()
                quiet = 0.0
            pause = FIRST if rows or self._came.is_set() else min(MOST, pause * 1.5)
            await asyncio.sleep(pause)

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
