"""The PostgreSQL transport: the outbox is the queue.

A delivery is a lease on a row (`due_at` in the future), taken with SKIP LOCKED. An ack deletes the row, together with
others that are acked at about that time. Both are relaxed commits: if a crash loses one, the message is delivered
again, which every handler tolerates. So each step of an execution still costs one durable commit.

The process that committed a message wakes the consumers with NOTIFY in a transaction of its own. In a deciding
transaction, NOTIFY would serialize the commits. Polling is the fallback.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Collection, Sequence
from uuid import UUID

import asyncpg
import orjson
import structlog

from penstock.errors import ConnectionFailed
from penstock.messaging.settled_rows import SettledRows
from penstock.messaging.supervision import Supervisor
from penstock.messaging.transports import Message
from penstock.messaging.transports.postgres.listener import Listener
from penstock.messaging.transports.postgres.scan_range import ALL_AGAIN, EVERYTHING, FAR
from penstock.messaging.transports.postgres.subscription import Subscription
from penstock.store.outbox import outbox_queue, queues
from penstock.store.outbox.outbox_queue import NewMessage
from penstock.store.session import crash_points, notifications
from penstock.store.session.database import Database, is_transient, retried

log = structlog.get_logger()

BROADCASTS = "penstock"
"""The channel of broadcasts."""
OF_WORK, OF_QUEUES = "penstock.work", "penstock.queues"
"""The channels on which the names of queues with messages are sent: queues of routes, and all others. A process
listens only to channels of queues that it consumes, since otherwise each message would wake every process."""
HEARD_BY = {
    "client": (),
    "cli": (),
    "api": (BROADCASTS, OF_WORK),
    "gateway": (BROADCASTS, OF_WORK),
    "worker": (BROADCASTS, OF_WORK),
    "executor": (BROADCASTS, OF_QUEUES),
}
"""Roles of processes, and the channels on which each listens. A role without channels serves no readiness check."""
STATUS_CHANNEL = "penstock.status"
"""The channel of announcements, with the same bodies as on the status exchange of a broker."""
CLOSING = 1.0
"""Seconds that the last notification of other processes may take while the transport closes. They poll, too."""


def heard_by(role: str) -> Sequence[str]:
    """Return the channels on which a process of this role listens; all of them for an unknown role."""
    return HEARD_BY.get(role, (BROADCASTS, OF_WORK, OF_QUEUES))


class PostgresTransport:
    """A transport that keeps messages in the outbox table. See penstock.messaging.transports.Transport for the
    contract."""

    name = "postgres"
    outbox_is_queue = True

    def __init__(
        self,
        database: Database,
        *,
        supervisor: Supervisor | None = None,
        process: UUID | None = None,
        hears: Sequence[str] = (BROADCASTS, OF_WORK, OF_QUEUES),
    ) -> None:
        """`process` holds the leases: when it has ended, its messages are delivered to others. `hears` are the
        channels of the queues that it consumes. A process that only publishes needs none, and no connection for them."""
        self._settings = database.settings
        self._supervisor = supervisor or Supervisor()
        self._process = process
        self._hears = () if database.settings.database_pooler else hears
        self._database = database
        self._wake = self._database.session()
        self._put = self._database.session()
        self._take = self._database.session()
        self._acked = SettledRows(database)
        self._subscriptions: dict[str, list[Subscription]] = {}
        self._listeners: list[Listener] = []
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
        await retried(lambda: notifications.ping(self._wake), deadline=30)
        self._polling = self._supervisor.start("postgres transport: poll", self._poll)
        if not self._hears:
            self._connected.set()
            return
        self._listening = self._supervisor.start("postgres transport: listen", self._listen_for_wakes)
        try:
            async with asyncio.timeout(30):
                await self._connected.wait()
        except TimeoutError:
            raise ConnectionFailed(
                "PostgreSQL does not accept LISTEN",
                hint="If a pooler is in front of PostgreSQL, set PENSTOCK_DATABASE_POOLER=true.",
            ) from None

    async def close(self) -> None:
        if self._waking is not None:  # finish the notification about the last published messages
            await asyncio.wait([self._waking], timeout=CLOSING)
        self._closed = True
        tasks = (self._listening, self._waking, self._polling)
        await self._supervisor.stop(*(task for task in tasks if task is not None))
        for subscriptions in list(self._subscriptions.values()):
            for subscription in list(subscriptions):
                await subscription.close()
        await self._acked.flush()
        self._acked.close()

    async def publish(self, messages: Sequence[Message]) -> list[bool]:
        if self._closed:
            return [False] * len(messages)
        deliverable = [m.outbox_id is not None or queues.is_consumed(m.queue) for m in messages]
        fresh = [m for m, ok in zip(messages, deliverable, strict=True) if ok and m.outbox_id is None]
        crash_points.at("publishing")
        if fresh:
            await outbox_queue.put(
                self._put,
                [
                    NewMessage(m.queue, m.body, m.id, m.type, orjson.dumps(dict(m.headers)).decode())
                    for m in fresh
                ],
            )
        self.wake({m.queue for m in messages})
        announced = [m for m in messages if queues.is_announcement(m.queue)]
        bodies = [m.body.decode() for m in announced if len(m.body) < notifications.LARGEST]
        if bodies:
            await notifications.notify_all(self._wake, STATUS_CHANNEL, bodies)
        crash_points.at("published")
        return [ok or queues.is_announcement(m.queue) for m, ok in zip(messages, deliverable, strict=True)]

    def wake(self, names: Collection[str]) -> None:
        """Wake the consumers of these queues: those of this process at once, others by NOTIFY. At most one
        notification is under way, and later names go with the next. Names that no service consumes are left out."""
        names = {name for name in names if queues.is_consumed(name)}
        for queue in names:
            for subscription in self._subscriptions.get(queue, ()):
                subscription.wake.set()
        self._pending |= names
        if self._closed or not self._pending:
            return
        if self._waking is None or self._waking.done():
            self._waking = asyncio.create_task(self._notify(), name="notify")

    async def _notify(self) -> None:
        while self._pending:
            names, self._pending = self._pending, set()
            try:
                await notifications.notify_each(self._wake, _texts(names))
            except Exception as error:
                if not is_transient(error):
                    log.exception("postgres.notify_failed")
                return  # consumers poll

    async def _poll(self) -> None:
        """Poll all queues in one statement for messages without a notification: expired leases, delayed messages, and
        all messages if there is no LISTEN."""
        interval = 1.0 if self._settings.database_pooler else self._settings.poll_interval
        all_at = -math.inf
        while True:
            await asyncio.sleep(interval * random.uniform(0.8, 1.2))
            now = time.monotonic()
            everything = now >= all_at + ALL_AGAIN
            reach = {
                queue: EVERYTHING if everything else max(s.look.before(FAR) for s in subscriptions)
                for queue, subscriptions in self._subscriptions.items()
                if subscriptions
            }
            if not reach:
                continue
            try:
                waiting = await outbox_queue.waiting(self._wake, list(reach), list(reach.values()))
            except Exception as error:
                if not is_transient(error):
                    raise
                continue
            if everything:
                all_at = now
            for queue in waiting:
                for subscription in self._subscriptions.get(queue, ()):
                    subscription.look.look_further_next(everything=everything)
                    subscription.wake.set()

    async def _listen_for_wakes(self) -> None:
        while True:
            lost_event = asyncio.Event()
            try:
                connection = await self._database.connect()
            except Exception as error:
                if not is_transient(error):
                    raise
                self._connected.clear()
                await asyncio.sleep(random.uniform(0.2, 1))
                continue
            try:
                connection.add_termination_listener(lambda _, lost_event=lost_event: lost_event.set())
                for channel in self._hears:
                    await notifications.listen(connection, channel, self._on_notify)
                self._database.may_lend(connection)
                self._connected.set()
                for subscriptions in self._subscriptions.values():
                    for subscription in subscriptions:
                        subscription.wake.set()
                await lost_event.wait()
            except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
                await asyncio.sleep(0.2)
            finally:
                connection.terminate()
            self._connected.clear()

    def _on_notify(self, text: str) -> None:
        if text.startswith("!"):
            for listener in self._listeners:
                listener.push(text[1:].encode())
            return
        for queue in text.split(","):
            for subscription in self._subscriptions.get(queue, ()):
                subscription.wake.set()

    async def subscribe(self, queue: str, prefetch: int) -> Subscription:
        subscription = Subscription(
            self.forget,
            self.wake,
            queue,
            prefetch,
            self._take,
            self._put,
            self._acked,
            self._process,
        )
        self._subscriptions.setdefault(queue, []).append(subscription)
        return subscription

    def forget(self, subscription: Subscription) -> None:
        subscriptions = self._subscriptions.get(subscription.queue, [])
        if subscription in subscriptions:
            subscriptions.remove(subscription)

    async def declare(self, queue: str) -> None:
        """Do nothing: every queue exists, as a value in a column."""

    async def depth(self, queue: str) -> int:
        return await outbox_queue.depth(self._put, queue)

    async def broadcast(self, body: bytes) -> None:
        if len(body) < notifications.LARGEST:  # NOTIFY cannot carry more; a broadcast is best effort
            crash_points.at("broadcasting")
            await notifications.notify(self._wake, BROADCASTS, "!" + body.decode())
            crash_points.at("told")

    async def listen(self) -> Listener:
        listener = Listener(self._listeners)
        self._listeners.append(listener)
        return listener


def _texts(names: Collection[str]) -> dict[str, str]:
    """Return, by channel, the text that names the queues with messages."""
    work = {name for name in names if queues.is_work(name)}
    return {
        channel: ",".join(sorted(of))
        for channel, of in ((OF_WORK, work), (OF_QUEUES, set(names) - work))
        if of
    }
