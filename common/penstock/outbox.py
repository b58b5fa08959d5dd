"""From the outbox to the transport (I8): straight after the commit by whoever staged, else by a relay.

Rows are deleted once the broker has confirmed, in bulk and relaxed: a lost deletion publishes again, which is safe.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

import structlog

from penstock import messages
from penstock.database import Database, Row, backoff, is_transient
from penstock.transports import STATUS, Transport

log = structlog.get_logger()

DELETE = "delete from outbox where id = any($1::bigint[])"
FAILED = """
update outbox set tries = tries + 1, error = 'not confirmed by the broker',
    due_at = clock_timestamp() + make_interval(secs => least(300, 2 ^ least(tries, 8)) * (0.5 + random()))
where id = any($1::bigint[])
"""
LEASE = """
with old as (
    select o.id from (select distinct queue from outbox) q
    cross join lateral (
        select id from outbox
        where queue = q.queue and due_at <= clock_timestamp() - make_interval(secs => $1)
        order by due_at limit $2 for update skip locked
    ) o
    limit $2
)
update outbox o set due_at = clock_timestamp() + make_interval(secs => $3)
from old where o.id = old.id
returning o.id as outbox_id, o.queue, o.ids
"""


class Publisher:
    """Publishes what a commit has staged, without keeping the handler waiting for the confirm."""

    def __init__(self, transport: Transport, database: Database, *, delete_every: float = 0.1) -> None:
        self.transport = transport
        self._stores = getattr(transport, "stores", False)
        self._session = database.session(relaxed=True)
        self._delete_every = delete_every
        self._confirmed: list[int] = []
        self._under_way: set[asyncio.Task[None]] = set()
        self._deleting: asyncio.Task[None] | None = None
        self._room = asyncio.Semaphore(64)

    def publish(self, staged: Sequence[Row]) -> None:
        """Start publishing. What is not confirmed stays in the outbox, for a relay."""
        if not staged:
            return
        task = asyncio.create_task(self._publish(staged), name="publish")
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _publish(self, staged: Sequence[Row]) -> None:
        async with self._room:
            try:
                confirmed = await self.transport.publish(
                    [messages.message(row["outbox_id"], row["queue"], row["ids"]) for row in staged]
                )
            except Exception as error:
                if not is_transient(error):
                    log.exception("publish.failed")
                return
        if self._stores:  # the rows are the queue; only what nobody consumes has been told by now
            confirmed = [row["queue"].startswith(STATUS) for row in staged]
        self._confirmed += [row["outbox_id"] for row, ok in zip(staged, confirmed, strict=True) if ok]
        if self._confirmed and (self._deleting is None or self._deleting.done()):
            self._deleting = asyncio.create_task(self._delete(), name="outbox.delete")

    async def _delete(self) -> None:
        await asyncio.sleep(self._delete_every)
        while self._confirmed:
            ids, self._confirmed = self._confirmed, []
            async for attempt in backoff():
                with attempt:
                    await self._session.fetch(DELETE, ids)

    async def relay(self, age: float, limit: int = 200) -> int:
        """Publish again what is older than `age` seconds. Rows are leased, so relays share the work; a row that the
        broker does not take is tried later and later. Returns how many were confirmed."""
        rows = await self._session.fetch(LEASE, age, limit, 30.0)
        if not rows:
            return 0
        confirmed = await self.transport.publish(
            [messages.message(row["outbox_id"], row["queue"], row["ids"]) for row in rows]
        )
        done = [row["outbox_id"] for row, ok in zip(rows, confirmed, strict=True) if ok]
        failed = [row["outbox_id"] for row, ok in zip(rows, confirmed, strict=True) if not ok]
        if done:
            await self._session.fetch(DELETE, done)
        if failed:
            await self._session.fetch(FAILED, failed)
        return len(done)

    async def flush(self) -> None:
        """Wait for what is under way."""
        while self._under_way:
            await asyncio.gather(*self._under_way, return_exceptions=True)
        if self._deleting is not None:
            await self._deleting

    async def close(self) -> None:
        """Give what is under way a moment; a relay sees to the rest."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2):
                await self.flush()
        for task in (*self._under_way, *([self._deleting] if self._deleting else [])):
            task.cancel()
