"""The wait for results. A process that ends an awaited execution notifies this one, with the result or only of the end, and
then this one looks. It also looks now and then without a notice, in one query for all that are awaited."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import orjson

from penstock.errors import ExecutionFailed, NotFound
from penstock.language.moves import COMPLETED
from penstock.store.executions import awaited, executions
from penstock.store.executions.awaited import Told
from penstock.store.executions.executions import ExecutionEnd
from penstock.store.executions.stored_results import StoredResults
from penstock.store.executions.told_ends import ToldEnds
from penstock.store.session.database import Database, retried

FIRST, MOST = 0.01, 1.0
"""Seconds between looks: soon after a waiter came or something ended, rarer while nothing happens."""
RARER, RARER_WHERE_TOLD = 1.5, 4.0
"""By how much they become rarer; and where one is told of ends, so that a look only finds what ended while one began to listen,
or what nobody told."""
LINGER = 10.0
"""Seconds for which one still listens when nobody waits."""
FORGOTTEN = 1.0
"""Seconds that it may take to say that nobody waits any more."""
SAID_AGAIN = 3600.0
"""Seconds after which it is said again who is waited for: it is forgotten after a day."""
OUTAGE = 60.0
"""Seconds without an answer from PostgreSQL after which whoever waits is told so. They may wait again."""
DONE_AT_ONCE = 100
"""Ends after which a statement only says that they are not waited for any more."""
EARLY = 1000
"""Ends that are kept at most for submits that have not returned."""
GONE = 1.0
"""Seconds after which ids that no table knows are looked for in the archive, and then given up."""


class ResultWatch:
    """Looks for all awaited executions at once."""

    def __init__(self, database: Database) -> None:
        self._session = database.session()
        settings = self._session.settings
        self.stored = StoredResults(settings.result_store, settings.result_store_cap, self._session)
        self._told = ToldEnds(database, self._hear)
        self._new: set[UUID] = set()
        """Of which nobody has been told that they are waited for."""
        self._heard: set[UUID] = set()
        self._done: set[UUID] = set()
        self._said_at = -SAID_AGAIN
        self._look_at = 0.0
        """When all are looked for."""
        self._waiting: dict[UUID, list[asyncio.Future[ExecutionEnd]]] = {}
        self._looking: asyncio.Task[None] | None = None
        self._expecting = 0
        """Submits under way that name this watcher."""
        self._early: dict[UUID, ExecutionEnd | None] = {}
        """Ends that were told before their submits had returned. None: the execution has ended, and how is to be looked for."""
        self._came = asyncio.Event()

    @contextmanager
    def expecting(self) -> Iterator[UUID | None]:
        """Give the watcher that a submit may name, while this process listens. Ends that are told before the submit returns are
        kept for `ended`, which is called inside this block."""
        self._expecting += 1
        try:
            yield self._told.watcher if self._looks and self._told.listens else None
        finally:
            self._expecting -= 1
            if not self._expecting:
                self._early.clear()

    @property
    def _looks(self) -> bool:
        return self._looking is not None and not self._looking.done()

    async def result(self, id: UUID, *, timeout: float | None = None, named: bool = False) -> Any:
        """The result of an execution once it has ended. Raises ExecutionFailed, NotFound, TimeoutError, and what PostgreSQL
        says when it has not answered for OUTAGE seconds. `named` as for `ended`."""
        async with asyncio.timeout(timeout):
            row = await self.ended(id, named=named)
            if row.status == COMPLETED:
                return await self.stored.loads(row.result or "null")
        error = orjson.loads(row.error) if row.error is not None else {}
        raise ExecutionFailed(
            f"execution {id} ended as {row.status}: {error.get('type', '')}: {error.get('message', '')}".rstrip(
                ": "
            ),
            hint=f"`penstock show {id}` tells what happened.",
            execution_id=id,
            status=row.status,
        )

    async def ended(self, id: UUID, *, named: bool = False) -> ExecutionEnd:
        """The row of an execution once it has ended (id, status, result, error as JSON text). `named`: the submit named this
        watcher, so that the end is told. A look only finds it if the connection is lost."""
        id = UUID(str(id))  # an id that came as text would never be found among those that have ended
        if id in self._early:
            if (end := self._early.pop(id)) is not None:
                return await self._opened(end)
            named = False  # its end was too long for a notification: it is looked for
        future: asyncio.Future[ExecutionEnd] = asyncio.get_running_loop().create_future()
        if named and not self._waiting:
            self._look_at = time.monotonic() + MOST
        self._waiting.setdefault(id, []).append(future)
        if not named:
            self._new.add(id)
        self._came.set()
        if not self._looks:
            self._looking = asyncio.create_task(self._watch(), name="watch")
        try:
            return await self._opened(await future)
        finally:
            futures = self._waiting.get(id)
            if futures is not None and future in futures:
                futures.remove(future)
                if not futures:
                    del self._waiting[id]
                    self._done.add(id)

    async def _opened(self, end: ExecutionEnd) -> ExecutionEnd:
        """Return an end with its values open: a notification has them as the database does."""
        codec = self._session.codec
        if codec is None:
            return end
        result = await codec.opened_value(self._session.fetch, end.result)
        return ExecutionEnd(
            end.id, end.status, result, await codec.opened_value(self._session.fetch, end.error)
        )

    async def _watch(self) -> None:
        """Look until no caller waits any more. An error that ends this early goes to all callers that wait: no other task
        would look for them."""
        try:
            while True:
                await self._look()
                await self._stop_listening()
                if not self._waiting:
                    return
        except Exception as error:
            waiting, self._waiting = self._waiting, {}
            for future in (future for futures in waiting.values() for future in futures):
                if not future.done():
                    future.set_exception(error)

    async def _look(self) -> None:
        pause, quiet = FIRST, 0.0
        while await self._somebody_waits():
            self._came.clear()
            await self._told.open()
            now = time.monotonic()
            all_of_them = now >= self._look_at
            has_new, rows = bool(self._new), await self._found(all_of_them=all_of_them)
            for row in rows:
                self._resolve(row.id, row)
            if rows or has_new:
                pause, quiet = FIRST, 0.0
                self._look_at = min(self._look_at, now + FIRST) if not all_of_them else now + FIRST
            elif all_of_them:
                quiet += pause
                pause = min(MOST, pause * (RARER_WHERE_TOLD if self._told.listens else RARER))
                self._look_at = now + pause
            if quiet > GONE:
                await self._find_gone()
                quiet = 0.0
            await self._rest(self._look_at - time.monotonic())

    async def _somebody_waits(self) -> bool:
        """Return whether a caller waits, or did a moment ago."""
        until = time.monotonic() + LINGER
        while not self._waiting and self._told.listens and (self._expecting or time.monotonic() < until):
            self._came.clear()  # one may be told late of what one found
            await self._rest(max(FIRST, until - time.monotonic()))
        return bool(self._waiting)

    async def _rest(self, seconds: float) -> None:
        """Wait until something comes, or nothing did for so long."""
        if not self._told.listens and self._waiting:
            await asyncio.sleep(FIRST)  # the ends of callers that come meanwhile are looked for together
            seconds -= FIRST
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, seconds)):
                await self._came.wait()

    async def _found(self, *, all_of_them: bool) -> list[ExecutionEnd]:
        new, heard, done = self._new & self._waiting.keys(), self._heard, self._done
        self._new, self._heard, self._done = set(), set(), set()
        ids = list(self._waiting) if all_of_them else [id for id in new | heard if id in self._waiting]
        if not self._told.listens:
            return await retried(lambda: executions.finished(self._session, ids), deadline=OUTAGE)
        if time.monotonic() > self._said_at + SAID_AGAIN:
            self._said_at, new = time.monotonic(), set(self._waiting)
        if not (ids or new or len(done) > DONE_AT_ONCE):
            self._done |= done  # until there is something to ask
            return []
        return await retried(
            lambda: awaited.look(self._session, self._told.watcher, ids, new, done), deadline=OUTAGE
        )

    def _hear(self, notice: Told) -> None:
        for end in notice.ends:
            self._resolve(end.id, end)
        if not notice.ends:  # it has to be looked for
            self._heard.update(notice.ids or self._waiting)
            for id in notice.ids:
                self._keep_early(id, None)
            self._came.set()

    async def _find_gone(self) -> None:
        """Executions that are not in the hot table any more, or never were."""
        stored = await retried(lambda: executions.find(self._session, list(self._waiting)), deadline=OUTAGE)
        rows = {row.id: row for row in stored}
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
        self._done.add(id)
        self._keep_early(id, row)
        for future in self._waiting.pop(id, []):
            if not future.done():
                future.set_result(row)

    def _keep_early(self, id: UUID, row: ExecutionEnd | None) -> None:
        if id not in self._waiting and self._expecting:
            self._early[id] = row
            if len(self._early) > EARLY:
                del self._early[next(iter(self._early))]

    async def close(self) -> None:
        """Stop looking. That this process waits for nothing more is said if PostgreSQL answers at once."""
        if self._looking is not None:
            self._looking.cancel()
        await self._stop_listening()

    async def _stop_listening(self) -> None:
        if not self._told.listens:
            return
        self._told.close()
        self._said_at = -SAID_AGAIN
        with contextlib.suppress(Exception):
            async with asyncio.timeout(FORGOTTEN):
                await awaited.forget(self._session, self._told.watcher)
