"""Consuming one queue: leases on rows of the outbox."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Sequence
from uuid import UUID

import asyncpg
import orjson

from penstock.messaging import messages
from penstock.messaging.transports import QUEUE_HEADER, REASON_HEADER, Delivery
from penstock.messaging.transports.postgres.look_back import LookBack
from penstock.settings import Settings
from penstock.store import crash_points, queues
from penstock.store.database import Row, Session, backoff, is_transient, retried

TAKE = """
with taken as (
    select id, due_at from outbox where queue = $1
        and due_at between statement_timestamp() - make_interval(secs => $4) and statement_timestamp()
    order by due_at, id limit $2 for update skip locked
)
update outbox o set due_at = clock_timestamp() + make_interval(secs => $3), tries = tries + 1
from taken t where o.id = t.id
returning o.id, o.ids, o.body, o.message_id, o.type, o.headers, o.tries,
    extract(epoch from statement_timestamp() - t.due_at)::float8 as age
"""
SETTLE = "delete from outbox where id = any($1::bigint[])"
GIVE_BACK = "update outbox set due_at = clock_timestamp() where id = any($1::bigint[])"
BURY = """
insert into outbox (queue, ids, body, message_id, type, headers)
select 'dead', '{}', b, m, t, h::jsonb from unnest($1::bytea[], $2::text[], $3::text[], $4::text[])
    as x (b, m, t, h)
"""


class Subscription:
    def __init__(
        self,
        forget: Callable[[Subscription], None],
        wake: Callable[[set[str]], None],
        queue: str,
        prefetch: int,
        take: Session,
        put: Session,
        settings: Settings,
    ) -> None:
        self.queue = queue
        self.wake = asyncio.Event()
        self.wake.set()
        self.look = LookBack()
        self._forget = forget
        self._wake_others = wake
        self._prefetch = prefetch
        self._session = take
        self._put = put
        self._settings = settings
        self._unsettled: set[int] = set()
        self._closed = False
        self._room = asyncio.Event()
        if prefetch:
            self._room.set()

    async def receive(self, limit: int) -> list[Delivery]:
        while not self._closed:
            await self._room.wait()
            free = self._prefetch - len(self._unsettled)
            if free <= 0:
                self._room.clear()
                continue
            self.wake.clear()
            rows = await self._take_rows(min(limit, free))
            if rows:
                if len(rows) == min(limit, free):
                    self.wake.set()  # there may be more
                self._unsettled |= {row["id"] for row in rows}
                return [self._delivery(row) for row in sorted(rows, key=_by_id)]
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.look.rest()):
                    await self.wake.wait()
        return []

    async def _take_rows(self, limit: int) -> list[Row]:
        while True:
            try:
                rows = await self._session.fetch(
                    TAKE, self.queue, limit, self._settings.lease, self.look.reach()
                )
            except Exception as error:
                if not is_transient(error):
                    raise
                self.look.again(everything=True)
                await asyncio.sleep(random.uniform(0.1, 0.5))
                continue
            self.look.saw(max(row["age"] for row in rows) if len(rows) == limit else 0.0)
            over = [row for row in rows if row["tries"] > self._settings.delivery_limit + 1]
            if over:
                await self.dead_letter([self._delivery(row) for row in over], "delivery_limit")
                rows = [row for row in rows if row["tries"] <= self._settings.delivery_limit + 1]
                if not rows:
                    continue
            return rows

    def _delivery(self, row: Row) -> Delivery:
        ids: list[UUID] = row["ids"]
        kind = row["type"] or ("work" if self.queue.startswith("work.") else self.queue)
        return Delivery(
            queue=self.queue,
            body=row["body"] if row["body"] is not None else messages.encode(kind, ids),
            tag=row["id"],
            id=row["message_id"] or f"outbox-{row['id']}",
            type=kind,
            app_id="penstock",
            content_type="application/json",
            routing_key=self.queue,
            attempts=row["tries"] - 1,
            headers=orjson.loads(row["headers"]) if row["headers"] else {},
        )

    async def ack(self, deliveries: Sequence[Delivery]) -> None:
        crash_points.at("acking")
        await self._settle([d.tag for d in deliveries])
        crash_points.at("acked")

    async def _settle(self, tags: list[int]) -> None:
        await retried(lambda: self._session.fetch(SETTLE, tags), deadline=self._settings.lease)
        self._freed(tags)

    def _freed(self, tags: Sequence[int]) -> None:
        self._unsettled.difference_update(tags)
        if len(self._unsettled) < self._prefetch:
            self._room.set()

    async def dead_letter(self, deliveries: Sequence[Delivery], reason: str) -> None:
        crash_points.at("burying")
        async for attempt in backoff(deadline=self._settings.lease):
            with attempt:
                async with self._put.transaction() as tx:
                    await tx.fetch(
                        BURY,
                        [d.body for d in deliveries],
                        [d.id for d in deliveries],
                        [d.type for d in deliveries],
                        [
                            orjson.dumps({**d.headers, REASON_HEADER: reason, QUEUE_HEADER: d.queue}).decode()
                            for d in deliveries
                        ],
                    )
                    await tx.fetch(SETTLE, [d.tag for d in deliveries])
        crash_points.at("buried")
        self._freed([d.tag for d in deliveries])
        self._wake_others({queues.DEAD})

    async def resize(self, prefetch: int) -> None:
        self._prefetch = prefetch
        if len(self._unsettled) < prefetch:
            self._room.set()
        else:
            self._room.clear()

    async def close(self) -> None:
        self._closed = True
        self._forget(self)
        self._room.set()
        self.wake.set()
        if self._unsettled:
            with contextlib.suppress(asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
                await self._session.fetch(GIVE_BACK, list(self._unsettled))
            self._unsettled.clear()
            self._wake_others({self.queue})


def _by_id(row: Row) -> int:
    return int(row["id"])
