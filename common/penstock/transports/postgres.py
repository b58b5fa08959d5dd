"""PostgreSQL carries the messages too: the outbox is the queue.

A delivery is a lease on a row (`due_at` in the future), taken with SKIP LOCKED; an ack deletes the row. Both are
relaxed commits: losing one in a crash delivers again, which every handler stands. So each step of an execution still
costs one durable commit. Whoever committed a message wakes the consumers with NOTIFY on a connection of its own
(a NOTIFY inside the deciding transactions would serialise their commits); polling is the fallback.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import asyncpg
import orjson

from penstock import messages
from penstock.database import Database, Row, Session, backoff, is_transient
from penstock.errors import ConnectionFailed
from penstock.settings import Settings
from penstock.transports import STATUS, Delivery, Message

CHANNEL = "penstock"

TAKE = """
with taken as (
    select id from outbox where queue = $1 and due_at <= clock_timestamp()
    order by due_at, id limit $2 for update skip locked
)
update outbox o set due_at = clock_timestamp() + make_interval(secs => $3), tries = tries + 1
from taken t where o.id = t.id
returning o.id, o.ids, o.body, o.message_id, o.type, o.headers, o.tries
"""
SETTLE = "delete from outbox where id = any($1::bigint[])"
GIVE_BACK = "update outbox set due_at = clock_timestamp() where id = any($1::bigint[])"
PUT = """
insert into outbox (queue, ids, body, message_id, type, headers)
select q, '{}', b, m, t, h::jsonb from unnest($1::text[], $2::bytea[], $3::text[], $4::text[], $5::text[])
    as x (q, b, m, t, h)
"""
BURY = """
insert into outbox (queue, ids, body, message_id, type, headers)
select 'dead', '{}', b, m, t, h::jsonb from unnest($1::bytea[], $2::text[], $3::text[], $4::text[])
    as x (b, m, t, h)
"""
WAITING = """
select q from unnest($1::text[]) q
where exists (select from outbox where queue = q and due_at <= clock_timestamp())
"""
DEPTH = "select count(*) from outbox where queue = $1 and due_at <= clock_timestamp()"
QUEUES = frozenset(
    {
        messages.EVENT_RECEIVED,
        messages.EVENT_CREATED,
        messages.ENFORCEMENT_CREATED,
        messages.EXECUTION_REQUESTED,
        messages.EXECUTION_COMPLETED,
        messages.WORKFLOW_STARTED,
        messages.INQUIRY_RESPONDED,
        messages.DEAD,
    }
)


class PostgresTransport:
    """Carries messages in the outbox table. See penstock.transports.Transport for the contract."""

    name = "postgres"
    stores = True

    def __init__(self, settings: Settings, *, role: str = "transport") -> None:
        self._settings = settings
        self._database = Database(settings, role=role)
        self._wake = self._database.session(relaxed=True)
        self._put = self._database.session()
        self._take = self._database.session(relaxed=True)
        self._subscriptions: dict[str, list[_Subscription]] = {}
        self._listeners: list[_Listener] = []
        self._pending: set[str] = set()
        self._waking: asyncio.Task[None] | None = None
        self._listening: asyncio.Task[None] | None = None
        self._polling: asyncio.Task[None] | None = None
        self._connected = asyncio.Event()
        self._closed = False

    @property
    def healthy(self) -> bool:
        return self._connected.is_set() and not self._closed

    async def open(self) -> None:
        async for attempt in backoff(deadline=30):
            with attempt:
                await self._wake.fetch("select 1")
        self._polling = asyncio.create_task(self._poll(), name="poll")
        if self._settings.database_pooler:
            self._connected.set()
            return
        self._listening = asyncio.create_task(self._listen_for_wakes(), name="wake-ups")
        try:
            async with asyncio.timeout(30):
                await self._connected.wait()
        except TimeoutError:
            raise ConnectionFailed("PostgreSQL does not take LISTEN", hint="Is there a pooler in between?") from None

    async def close(self) -> None:
        self._closed = True
        for task in (self._listening, self._waking, self._polling):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        for subscriptions in list(self._subscriptions.values()):
            for subscription in list(subscriptions):
                await subscription.close()
        await self._database.close()

    async def publish(self, messages: Sequence[Message]) -> list[bool]:
        if self._closed:
            return [False] * len(messages)
        known = [
            m.outbox_id is not None or m.queue in QUEUES or m.queue.startswith("work.") for m in messages
        ]
        fresh = [m for m, ok in zip(messages, known, strict=True) if ok and m.outbox_id is None]
        if fresh:
            await self._put.fetch(
                PUT,
                [m.queue for m in fresh],
                [m.body for m in fresh],
                [m.id for m in fresh],
                [m.type for m in fresh],
                [orjson.dumps(dict(m.headers)).decode() for m in fresh],
            )
        self.wake({m.queue for m, ok in zip(messages, known, strict=True) if ok})
        return [ok or m.queue.startswith(STATUS) for m, ok in zip(messages, known, strict=True)]

    def wake(self, queues: set[str]) -> None:
        """Tell consumers of these queues to look. Those of this process at once, others through NOTIFY, of which
        there is never more than one under way: what comes meanwhile goes with the next."""
        for queue in queues:
            for subscription in self._subscriptions.get(queue, ()):
                subscription.wake.set()
        self._pending |= queues
        if self._closed:
            return
        if self._waking is None or self._waking.done():
            self._waking = asyncio.create_task(self._notify(), name="notify")

    async def _notify(self) -> None:
        while self._pending:
            queues, self._pending = self._pending, set()
            try:
                await self._wake.fetch("select pg_notify($1, $2)", CHANNEL, ",".join(sorted(queues)))
            except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
                if not is_transient(error):
                    raise
                return  # consumers poll

    async def _poll(self) -> None:
        """Look now and then, in one statement for all queues, for what no wake-up told of: leases that ran out,
        messages that were delayed, and everything where there is no LISTEN."""
        most = 1.0 if self._settings.database_pooler else self._settings.poll_interval
        while True:
            await asyncio.sleep(most * random.uniform(0.8, 1.2))
            queues = [queue for queue, subscriptions in self._subscriptions.items() if subscriptions]
            if not queues:
                continue
            try:
                rows = await self._wake.fetch(WAITING, queues)
            except Exception as error:
                if not is_transient(error):
                    raise
                continue
            for row in rows:
                for subscription in self._subscriptions.get(row["q"], ()):
                    subscription.wake.set()

    async def _listen_for_wakes(self) -> None:
        while True:
            lost = asyncio.Event()
            try:
                connection = await self._database.connect(relaxed=True)
            except Exception as error:
                if not is_transient(error):
                    raise
                self._connected.clear()
                await asyncio.sleep(random.uniform(0.2, 1))
                continue
            try:
                connection.add_termination_listener(lambda _, lost=lost: lost.set())
                await connection.add_listener(CHANNEL, self._on_notify)
                self._connected.set()
                for subscriptions in self._subscriptions.values():
                    for subscription in subscriptions:
                        subscription.wake.set()
                await lost.wait()
            except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
                await asyncio.sleep(0.2)
            finally:
                connection.terminate()
            self._connected.clear()

    def _on_notify(self, _connection: Any, _pid: int, _channel: str, payload: object) -> None:
        text = str(payload)
        if text.startswith("!"):
            for listener in self._listeners:
                listener.push(text[1:].encode())
            return
        for queue in text.split(","):
            for subscription in self._subscriptions.get(queue, ()):
                subscription.wake.set()

    async def subscribe(self, queue: str, prefetch: int) -> _Subscription:
        subscription = _Subscription(self, queue, prefetch, self._take, self._put, self._settings)
        self._subscriptions.setdefault(queue, []).append(subscription)
        return subscription

    def forget(self, subscription: _Subscription) -> None:
        known = self._subscriptions.get(subscription.queue, [])
        if subscription in known:
            known.remove(subscription)

    async def declare(self, queue: str) -> None:
        """Every queue exists: it is a value in a column."""

    async def depth(self, queue: str) -> int:
        return int((await self._put.fetch(DEPTH, queue))[0][0])

    async def broadcast(self, body: bytes) -> None:
        if len(body) < 7900:  # what NOTIFY carries; a broadcast is best effort
            await self._wake.fetch("select pg_notify($1, $2)", CHANNEL, "!" + body.decode())

    async def listen(self) -> _Listener:
        listener = _Listener(self._listeners)
        self._listeners.append(listener)
        return listener


class _Subscription:
    def __init__(
        self,
        transport: PostgresTransport,
        queue: str,
        prefetch: int,
        take: Session,
        put: Session,
        settings: Settings,
    ) -> None:
        self.queue = queue
        self.wake = asyncio.Event()
        self.wake.set()
        self._transport = transport
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
            await self.wake.wait()
        return []

    async def _take_rows(self, limit: int) -> list[Row]:
        while True:
            try:
                rows = await self._session.fetch(TAKE, self.queue, limit, self._settings.lease)
            except Exception as error:
                if not is_transient(error):
                    raise
                await asyncio.sleep(random.uniform(0.1, 0.5))
                continue
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
        await self._settle([d.tag for d in deliveries])

    async def _settle(self, tags: list[int]) -> None:
        async for attempt in backoff(deadline=self._settings.lease):
            with attempt:
                await self._session.fetch(SETTLE, tags)
        self._freed(tags)

    def _freed(self, tags: Sequence[int]) -> None:
        self._unsettled.difference_update(tags)
        if len(self._unsettled) < self._prefetch:
            self._room.set()

    async def dead_letter(self, deliveries: Sequence[Delivery], reason: str) -> None:
        async for attempt in backoff(deadline=self._settings.lease):
            with attempt:
                async with self._put.transaction() as tx:
                    await tx.fetch(
                        BURY,
                        [d.body for d in deliveries],
                        [d.id for d in deliveries],
                        [d.type for d in deliveries],
                        [
                            orjson.dumps(
                                {**d.headers, "x-penstock-reason": reason, "x-penstock-queue": d.queue}
                            ).decode()
                            for d in deliveries
                        ],
                    )
                    await tx.fetch(SETTLE, [d.tag for d in deliveries])
        self._freed([d.tag for d in deliveries])
        self._transport.wake({messages.DEAD})

    async def resize(self, prefetch: int) -> None:
        self._prefetch = prefetch
        if len(self._unsettled) < prefetch:
            self._room.set()
        else:
            self._room.clear()

    async def close(self) -> None:
        self._closed = True
        self._transport.forget(self)
        self._room.set()
        self.wake.set()
        if self._unsettled:
            with contextlib.suppress(asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
                await self._session.fetch(GIVE_BACK, list(self._unsettled))
            self._unsettled.clear()
            self._transport.wake({self.queue})


class _Listener:
    queue = "control"

    def __init__(self, home: list[_Listener]) -> None:
        self._home = home
        self._bodies: asyncio.Queue[bytes] = asyncio.Queue(1000)

    def push(self, body: bytes) -> None:
        with contextlib.suppress(asyncio.QueueFull):  # best effort
            self._bodies.put_nowait(body)

    async def receive(self, limit: int) -> list[Delivery]:
        bodies = [await self._bodies.get()]
        while len(bodies) < limit and not self._bodies.empty():
            bodies.append(self._bodies.get_nowait())
        return [Delivery(self.queue, body, None) for body in bodies]

    async def ack(self, deliveries: Sequence[Delivery]) -> None:
        """A broadcast needs no ack."""

    async def dead_letter(self, deliveries: Sequence[Delivery], reason: str) -> None:
        """A broadcast is best effort: nothing to keep."""

    async def resize(self, prefetch: int) -> None:
        """A listener takes what comes."""

    async def close(self) -> None:
        if self in self._home:
            self._home.remove(self)


def _by_id(row: Row) -> int:
    return int(row["id"])
