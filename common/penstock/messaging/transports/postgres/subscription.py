"""The consumer of one queue: it leases rows of the outbox."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Sequence
from uuid import UUID

import asyncpg
import orjson

from penstock.messaging import envelope
from penstock.messaging.settled_rows import SettledRows
from penstock.messaging.transports import QUEUE_HEADER, REASON_HEADER, Delivery
from penstock.messaging.transports.postgres.scan_range import LookBack
from penstock.store.outbox import outbox, outbox_queue, queues
from penstock.store.outbox.outbox_queue import NewMessage, Taken
from penstock.store.session import crash_points
from penstock.store.session.database import Session, backoff, is_transient

TAKEN = 5.0
"""Seconds that the closing consumer waits for a lease statement that is under way."""


class Subscription:
    """A Subscription on the outbox. Its prefetch bounds the unsettled messages, and a setting bounds their bytes."""

    def __init__(
        self,
        forget: Callable[[Subscription], None],
        wake: Callable[[set[str]], None],
        queue: str,
        prefetch: int,
        take: Session,
        put_session: Session,
        acked: SettledRows,
        process: UUID | None,
    ) -> None:
        self.queue = queue
        self.wake = asyncio.Event()
        self.wake.set()
        self.look = LookBack()
        self._forget = forget
        self._wake_others = wake
        self._prefetch = prefetch
        self._session = take
        self._put = put_session
        self._acked = acked
        self._settings = take.settings
        self._process = process
        self._unsettled: dict[int, int] = {}  # the bytes of each leased, unsettled message, by id
        self._taking: asyncio.Task[list[Taken]] | None = None
        self._closed = False
        self._room = asyncio.Event()
        if prefetch:
            self._room.set()

    async def receive(self, limit: int) -> list[Delivery]:
        while not self._closed:
            if self._taking is None:
                await self._room.wait()
                if not self._has_room():
                    self._room.clear()
                    continue
                if not self.wake.is_set():  # the last scan returned all messages, and none has arrived since
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(self.look.rest()):
                            await self.wake.wait()
                    if self._closed or not self._has_room():
                        continue
                free = min(limit, self._prefetch - len(self._unsettled))
                max_bytes = self._settings.prefetch_bytes - sum(self._unsettled.values())
                self.wake.clear()
                self._taking = asyncio.create_task(
                    self._take_rows(free, max_bytes), name=f"take {self.queue}"
                )
            # The task goes on if this caller is cancelled: otherwise no process would see the leased rows until the
            # lease ends. The next `receive` returns them, or `close` releases them.
            rows = await self._taken(self._taking)
            if rows:
                return [self._delivery(row) for row in sorted(rows, key=_by_id)]
        return []

    async def _taken(self, taking: asyncio.Task[list[Taken]]) -> list[Taken]:
        try:
            rows = await asyncio.shield(taking)
        except Exception:
            self._taking = None
            self.wake.set()  # the next call has to scan again
            raise
        # The subscription was closed meanwhile, and `close` releases these rows.
        if self._taking is not taking:
            return []
        self._taking = None
        self._unsettled |= {row.id: row.size for row in rows}
        return rows

    def _has_room(self) -> bool:
        held = sum(self._unsettled.values())
        return len(self._unsettled) < self._prefetch and held < self._settings.prefetch_bytes

    async def _take_rows(self, limit: int, max_bytes: int) -> list[Taken]:
        while not self._closed:
            try:
                rows = await outbox_queue.take(
                    self._session,
                    self.queue,
                    limit,
                    self._settings.lease,
                    self.look.reach(),
                    max_bytes,
                    self._process,
                )
            except Exception as error:
                if not is_transient(error):
                    raise
                self.look.look_further_next(everything=True)
                await asyncio.sleep(random.uniform(0.1, 0.5))
                continue
            full = len(rows) == limit or sum(row.size for row in rows) >= max_bytes
            self.look.saw(max(row.age for row in rows) if full else 0.0)
            if full:
                self.wake.set()  # there may be more messages
            exhausted = [row for row in rows if row.tries > self._settings.delivery_limit + 1]
            if exhausted:
                await self.dead_letter([self._delivery(row) for row in exhausted], "delivery_limit")
                rows = [row for row in rows if row.tries <= self._settings.delivery_limit + 1]
                if not rows:
                    continue
            return rows
        return []

    def _delivery(self, row: Taken) -> Delivery:
        kind = row.type or queues.message_type(self.queue)
        return Delivery(
            queue=self.queue,
            body=row.body if row.body is not None else envelope.encode(kind, row.ids),
            tag=row.id,
            id=row.message_id or f"outbox-{row.id}",
            type=kind,
            app_id="penstock",
            content_type="application/json",
            routing_key=self.queue,
            attempts=row.tries - 1,
            headers=orjson.loads(row.headers) if row.headers else {},
        )

    async def ack(self, deliveries: Sequence[Delivery]) -> None:
        crash_points.at("acking")
        tags = [d.tag for d in deliveries]
        self._acked.add(tags)
        self._freed(tags)
        crash_points.at("acked")

    def _freed(self, tags: Sequence[int]) -> None:
        for tag in tags:
            self._unsettled.pop(tag, None)
        if self._has_room():
            self._room.set()

    async def dead_letter(self, deliveries: Sequence[Delivery], reason: str) -> None:
        crash_points.at("burying")
        async for attempt in backoff(deadline=self._settings.lease):
            with attempt:
                async with self._put.transaction() as tx:
                    await outbox_queue.put(tx, [_dead(delivery, reason) for delivery in deliveries])
                    await outbox.delete(tx, [d.tag for d in deliveries])
        crash_points.at("buried")
        self._freed([d.tag for d in deliveries])
        self._wake_others({queues.DEAD})

    async def resize(self, prefetch: int) -> None:
        self._prefetch = prefetch
        if self._has_room():
            self._room.set()
        else:
            self._room.clear()

    async def close(self) -> None:
        self._closed = True
        self._forget(self)
        self._room.set()
        self.wake.set()
        taking, self._taking = self._taking, None
        if taking is not None:
            try:
                await asyncio.wait([taking], timeout=TAKEN)
            finally:
                taking.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                self._unsettled |= {row.id: row.size for row in await taking}
        if self._unsettled:
            with contextlib.suppress(asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
                await outbox.release(self._session, list(self._unsettled))
            self._unsettled.clear()
            self._wake_others({self.queue})


def _dead(delivery: Delivery, reason: str) -> NewMessage:
    headers = {**delivery.headers, REASON_HEADER: reason, QUEUE_HEADER: delivery.queue}
    return NewMessage(queues.DEAD, delivery.body, delivery.id, delivery.type, orjson.dumps(headers).decode())


def _by_id(row: Taken) -> int:
    return row.id
