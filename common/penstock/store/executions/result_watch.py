"""The wait for results of executions. The process that ends an awaited execution notifies this one, with the result
if it is short. This process also polls, with one query for all awaited executions, which also finds ends after a lost
notification."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import orjson

from penstock.language.moves import COMPLETED
from penstock.run.root_cause import (
    REQUESTED_ENDS,
    STATUSES,
    child_failed,
    child_timed_out,
    execution_failed,
    failure_sentence,
    headline,
)
from penstock.store.executions import awaited, executions
from penstock.store.executions.awaited import EndListener, EndNotice
from penstock.store.executions.executions import ExecutionEnd
from penstock.store.executions.stored_results import StoredResults
from penstock.store.session.database import Database, retried

FIRST, MOST = 0.01, 1.0
"""Seconds between two polls: FIRST after a waiter came or an execution ended, growing to MOST while nothing happens."""
RARER, RARER_WHERE_TOLD = 1.5, 4.0
"""Factors by which the pause between polls grows. The first holds without notifications. The second holds with
notifications, if a poll returns only ends with a missed notification."""
LINGER = 10.0
"""Seconds for which the process goes on listening after the last waiter."""
FORGOTTEN = 1.0
"""The timeout in seconds for deleting the rows of this watcher at its end."""
SAID_AGAIN = 3600.0
"""Seconds after which all awaited ids are written again: the database deletes them after a day."""
OUTAGE = 60.0
"""Seconds without an answer from PostgreSQL after which the waiting callers get the error. The callers may wait
again."""
DONE_AT_ONCE = 100
"""The number of ended executions after which a statement is sent only to delete their rows."""
EARLY = 1000
"""The maximum number of ends that are kept for submits that have not returned."""
GONE = 1.0
"""Seconds without any end after which ids are also looked up in the archive. Unknown ids then fail with NotFound."""


class ResultWatch:
    """A watcher that waits for the ends of all executions that callers await."""

    def __init__(self, database: Database) -> None:
        self._session = database.session()
        settings = self._session.settings
        self.stored = StoredResults(settings.result_store, settings.result_store_cap, self._session)
        self._listener = EndListener(database, self._hear)
        self._new: set[UUID] = set()
        """Awaited ids that are not written to the database yet."""
        self._heard: set[UUID] = set()
        self._done: set[UUID] = set()
        self._said_at = -SAID_AGAIN
        self._look_at = 0.0
        """The instant of the next poll for all awaited ids (monotonic)."""
        self._waiting: dict[UUID, list[asyncio.Future[ExecutionEnd]]] = {}
        self._looking: asyncio.Task[None] | None = None
        self._expecting = 0
        """The number of submits under way that name this watcher."""
        self._early: dict[UUID, ExecutionEnd | None] = {}
        """Ends that arrived before their submits returned. None: the execution has ended, and its end has to be polled."""
        self._came = asyncio.Event()

    @contextmanager
    def expecting(self) -> Iterator[UUID | None]:
        """Yield the id of this watcher, for a submit to name; None while the process does not listen. Ends that
        arrive before the submit returns are kept for `ended`, which must be called inside this block."""
        self._expecting += 1
        try:
            yield self._listener.watcher if self._looks and self._listener.listens else None
        finally:
            self._expecting -= 1
            if not self._expecting:
                self._early.clear()

    @property
    def _looks(self) -> bool:
        return self._looking is not None and not self._looking.done()

    async def result(self, id: UUID, *, timeout: float | None = None, named: bool = False) -> Any:
        """Return the result of an execution once it has ended. Raises ExecutionFailed if it did not complete, and
        NotFound if no execution has this id. Raises TimeoutError if it has not ended in time, and the error of
        PostgreSQL after OUTAGE seconds without an answer. `named` as in `ended`."""
        async with asyncio.timeout(timeout):
            row = await self.ended(id, named=named)
            if row.status == COMPLETED:
                return await self.stored.loads(row.result or "null")
        error = orjson.loads(row.error) if row.error is not None else None
        raise execution_failed(id, row.status, error, await self._failure(id, row.status, error))

    async def result_of_child(self, id: UUID, action: str, timeout: float | None) -> Any:
        """Return the result of an execution of `action` once it has ended, as `result` does. The errors are raised in the
        attempt that started the execution. They name the action, and a timeout also names the status."""
        deadline = asyncio.timeout(timeout)
        try:
            async with deadline:
                row = await self.ended(id)
                if row.status == COMPLETED:
                    return await self.stored.loads(row.result or "null")
        except TimeoutError:
            if timeout is None or not deadline.expired():
                raise
            child = await retried(lambda: executions.get(self._session, id), deadline=OUTAGE)
            raise child_timed_out(id, action, timeout, child.status) from None
        error = orjson.loads(row.error) if row.error is not None else None
        raise child_failed(id, action, row.status, error, await self._failure(id, row.status, error))

    async def _failure(self, id: UUID, status: str, error: Any) -> str | None:
        """Return the sentence about the failure of an ended execution. The reason of a requested end is not in its error
        if the action raised another one, and is read then."""
        if status not in REQUESTED_ENDS or not isinstance(error, dict) or error.get("type") in STATUSES:
            return headline(error)
        row = await retried(lambda: executions.get(self._session, id), deadline=OUTAGE)
        return failure_sentence(status, error, row.reason)

    async def ended(self, id: UUID, *, named: bool = False) -> ExecutionEnd:
        """Return the end of an execution once it has ended. `named`: the submit named this watcher, so the end is
        notified, and polls are only needed if the connection is lost."""
        id = UUID(str(id))  # an id in text form would never equal the ids of ended executions
        if id in self._early:
            if (end := self._early.pop(id)) is not None:
                return await self._opened(end)
            named = False  # its end was too long for a notification, so it has to be polled
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
        """Poll until no caller waits any more. An error that ends this task is raised in all waiting callers: no
        other task polls for them."""
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
            await self._listener.open()
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
                pause = min(MOST, pause * (RARER_WHERE_TOLD if self._listener.listens else RARER))
                self._look_at = now + pause
            if quiet > GONE:
                await self._find_gone()
                quiet = 0.0
            await self._rest(self._look_at - time.monotonic())

    async def _somebody_waits(self) -> bool:
        """Return True if a caller waits. Without one, wait up to LINGER seconds for the next."""
        until = time.monotonic() + LINGER
        while not self._waiting and self._listener.listens and (self._expecting or time.monotonic() < until):
            self._came.clear()  # a late notification about an end that a poll has returned may have set it
            await self._rest(max(FIRST, until - time.monotonic()))
        return bool(self._waiting)

    async def _rest(self, seconds: float) -> None:
        """Sleep for `seconds`, or until a caller or a notification comes."""
        if not self._listener.listens and self._waiting:
            await asyncio.sleep(FIRST)  # callers that come meanwhile share one poll
            seconds -= FIRST
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, seconds)):
                await self._came.wait()

    async def _found(self, *, all_of_them: bool) -> list[ExecutionEnd]:
        new, heard, done = self._new & self._waiting.keys(), self._heard, self._done
        self._new, self._heard, self._done = set(), set(), set()
        ids = list(self._waiting) if all_of_them else [id for id in new | heard if id in self._waiting]
        if not self._listener.listens:
            return await retried(
                lambda: awaited.look(self._session, self._listener.watcher, ids, (), ()), deadline=OUTAGE
            )
        if time.monotonic() > self._said_at + SAID_AGAIN:
            self._said_at, new = time.monotonic(), set(self._waiting)
        if not (ids or new or len(done) > DONE_AT_ONCE):
            self._done |= done  # deleted with the next statement
            return []
        return await retried(
            lambda: awaited.look(self._session, self._listener.watcher, ids, new, done), deadline=OUTAGE
        )

    def _hear(self, notice: EndNotice) -> None:
        for end in notice.ends:
            self._resolve(end.id, end)
        if not notice.ends:  # the ends have to be polled
            self._heard.update(notice.ids or self._waiting)
            for id in notice.ids:
                self._keep_early(id, None)
            self._came.set()

    async def _find_gone(self) -> None:
        """Look up awaited executions in the archive. Those that do not exist fail with NotFound. An execution that is awaited
        from now on is not among those that were looked up."""
        ids = list(self._waiting)
        stored = await retried(lambda: executions.find(self._session, ids), deadline=OUTAGE)
        rows = {row.id: row for row in stored}
        for id in ids:
            row = rows.get(id)
            if row is None:
                missing = executions.missing(id)
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
        """Stop polling. Delete the rows of this watcher if PostgreSQL answers within FORGOTTEN seconds."""
        if self._looking is not None:
            self._looking.cancel()
        await self._stop_listening()

    async def _stop_listening(self) -> None:
        if not self._listener.listens:
            return
        self._listener.close()
        self._said_at = -SAID_AGAIN
        with contextlib.suppress(Exception):
            async with asyncio.timeout(FORGOTTEN):
                await awaited.forget(self._session, self._listener.watcher)
