"""The RabbitMQ transport: quorum queues, publisher confirms, at-least-once dead letters (docs/transports.md)."""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
from collections.abc import Collection, Sequence

import structlog
from aiormq.abc import AbstractConnection as Connection
from aiormq.exceptions import ChannelNotFoundEntity

from penstock.errors import ConfigurationError, ConnectionFailed
from penstock.messaging.supervision import Supervisor
from penstock.messaging.transports import Message, Subscription
from penstock.messaging.transports.rabbitmq import address, wire
from penstock.messaging.transports.rabbitmq.call_timeouts import RECONNECT_WAIT, answered, close_channel
from penstock.messaging.transports.rabbitmq.connection import Link
from penstock.messaging.transports.rabbitmq.consumer import Consumer
from penstock.messaging.transports.rabbitmq.listener import Listener
from penstock.messaging.transports.rabbitmq.publisher import Publisher
from penstock.messaging.transports.rabbitmq.topology import Names, QueueType, Topology, explained
from penstock.messaging.transports.rabbitmq.watchdog import watch
from penstock.store.outbox.queues import DEAD, EVENT_RECEIVED
from penstock.store.session import crash_points

__all__ = ["RabbitMQTransport"]

log = structlog.get_logger(__name__)


FIRST_TRY_S = 3.0
"""Seconds in which a broker that is not needed can answer before `open` goes on without it."""
SETTLED = 1.0
"""Seconds between a check that finds a queue missing and its declaration. The broker tells the consumers of a deleted
queue. But if the queue exists again at that moment, it does not (seen with 3.10.8), and they would wait for nothing."""


class RabbitMQTransport:
    """A transport over RabbitMQ 3.10 or later. See penstock.messaging.transports.Transport for the contract.

    `url`: one address or several (a list, or separated by commas), tried in turn; amqps:// for TLS. `prefix`: the
    prefix of all exchanges and queues; an installation with another prefix is independent. `declare`: declare the
    topology; False: only check that it exists. `delivery_limit`: a message that was delivered this often without an
    ack is dead-lettered.

    `prefetch_bytes`: the maximum bytes of the messages that a consumer holds, apart from the last one.
    `publish_timeout`, `connect_deadline`, `watchdog_interval`, `topology_interval`, `heartbeat` are in seconds.
    `client`: the name of this process in the broker's list of connections. `supervisor`: the supervisor of the
    process, which ends if a connection keeper ends; by default no process does.
    """

    name = "rabbitmq"
    outbox_is_queue = False

    def __init__(
        self,
        url: str | Sequence[str],
        *,
        prefix: str = "penstock",
        declare: bool = True,
        queue_type: QueueType = "quorum",
        delivery_limit: int = 20,
        prefetch_bytes: int = 16 * 2**20,
        publish_timeout: float = 10.0,
        connect_deadline: float = 30.0,
        watchdog_interval: float = 15.0,
        topology_interval: float = 15.0,
        heartbeat: int = 10,
        client: str = "penstock",
        supervisor: Supervisor | None = None,
        is_needed: bool = True,
    ) -> None:
        """`is_needed`: `open` raises an error if the broker cannot be reached. Otherwise it is tried all the time
        afterwards, and no message is confirmed until then."""
        if not re.fullmatch(r"[A-Za-z0-9_.-]{1,60}", prefix):
            raise ConfigurationError(
                f"the prefix {prefix!r} is not usable in queue names",
                hint="Use 1 to 60 letters, digits, underscores, dots and hyphens.",
            )
        addresses = address.parse(url, heartbeat=heartbeat, client=client)
        self._deadline = connect_deadline
        self._prefetch_bytes = prefetch_bytes
        self._interval = watchdog_interval
        self._names = Names(prefix)
        self._topology = Topology(
            self._names, declare=declare, queue_type=queue_type, delivery_limit=delivery_limit
        )
        self._known: dict[str, None] = {}
        # Two connections: a broker that is short of memory stops reading from publishing connections, acks included.
        self._supervisor = supervisor or Supervisor()
        self._is_needed = is_needed
        self._consuming = Link(addresses, "consume", self._supervisor, prepare=self._prepare)
        self._publishing = Link(addresses, "publish", self._supervisor)
        self._publisher = Publisher(self._publishing, publish_timeout, self._doubt)
        self._looking_after = topology_interval
        self._doubted = asyncio.Event()
        self._missing = ""
        self._consumers: list[Consumer] = []
        self._listeners: list[Listener] = []
        self._watching: list[asyncio.Task[None]] = []

    @property
    def healthy(self) -> bool:
        return self._consuming.up and self._publisher.up and all(c.healthy for c in self._consumers)

    @property
    def blocked(self) -> bool:
        """Return True if the broker accepted no message at the last try, because it is short of memory or disk."""
        return self._publisher.blocked

    async def open(self) -> None:
        try:
            if self._is_needed:
                await self._connect(self._deadline)
            else:
                await self._try_to_connect()
        except BaseException:
            await self.close()
            raise
        self._watching = [
            self._supervisor.start("rabbitmq watchdog", lambda: watch(self._consumers, self._interval)),
            self._supervisor.start("rabbitmq topology", self._look_after_topology),
        ]

    async def _connect(self, deadline: float) -> None:
        await self._consuming.open(deadline)
        await self._publishing.open(deadline)
        await self._publisher.open(deadline)

    async def _try_to_connect(self) -> None:
        """Connect, or go on without a connection if the broker cannot be reached. Raises ConfigurationError."""
        try:
            async with asyncio.timeout(FIRST_TRY_S):
                await self._connect(0.0)
            return
        except TimeoutError:
            why = f"it did not answer within {FIRST_TRY_S:g} s"
        except ConnectionFailed as error:
            why = error.message
        log.warning("rabbitmq.not_connected", reason=why, next_try="at once, and all the time")
        for part in (self._consuming, self._publishing, self._publisher):
            await part.close()
            part.keep_open()

    async def close(self) -> None:
        await self._supervisor.stop(*self._watching)
        for consumer in self._consumers:
            await consumer.close()
        for listener in self._listeners:
            await listener.close()
        self._consumers.clear()
        self._listeners.clear()
        await self._publisher.close()
        await self._publishing.close()
        await self._consuming.close()

    async def publish(self, messages: Sequence[Message]) -> list[bool]:
        return await self._publisher.publish([wire.outgoing(message, self._names) for message in messages])

    def wake(self, names: Collection[str]) -> None:
        """Do nothing: with RabbitMQ, messages in the outbox are published, and no consumer reads them there."""

    async def subscribe(self, queue: str, prefetch: int) -> Subscription:
        consumer = Consumer(
            queue, prefetch, self._prefetch_bytes, self._consuming, self._topology, self._publisher
        )
        self._consumers[:] = [c for c in self._consumers if not c.closed] + [consumer]
        try:
            await consumer.open(self._deadline)
        except BaseException:
            await consumer.close()
            raise
        self._known[queue] = None
        return consumer

    async def declare(self, queue: str) -> None:
        connection = await self._consuming.connection(wait=RECONNECT_WAIT)
        async with answered():
            channel = await connection.channel(publisher_confirms=False)
        try:
            await self._topology.queue(channel, queue)
        finally:
            await close_channel(channel)
        self._known[queue] = None

    async def depth(self, queue: str) -> int:
        return await self._count(queue) or 0

    async def bind(self, queue: str) -> None:
        """Bind an existing queue. Raises ConfigurationError if the user may not."""
        connection = await self._consuming.connection(wait=RECONNECT_WAIT)
        async with answered():
            channel = await connection.channel(publisher_confirms=False)
        try:
            with explained("binding of", self._names.queue(queue)):
                await self._topology.bind(channel, queue)
        finally:
            await close_channel(channel)

    async def missing(self, queues: Sequence[str]) -> list[str]:
        """Return the names on the broker of those `queues` that do not exist there."""
        return [self._names.queue(queue) for queue in queues if await self._count(queue) is None]

    async def _count(self, queue: str) -> int | None:
        """Return the number of messages in a queue; None if it does not exist."""
        connection = await self._consuming.connection(wait=RECONNECT_WAIT)
        async with answered():
            channel = await connection.channel(publisher_confirms=False)
        try:
            async with answered():
                declared = await channel.queue_declare(self._names.queue(queue), passive=True)
                return declared.message_count or 0
        except ConnectionFailed as error:
            if isinstance(error.__cause__, ChannelNotFoundEntity):
                return None
            raise
        finally:
            await close_channel(channel)

    async def broadcast(self, body: bytes) -> None:
        crash_points.at("broadcasting")
        await self._publisher.publish([wire.broadcast(body, self._names)])
        crash_points.at("told")

    async def listen(self) -> Subscription:
        listener = Listener(self._consuming, self._names)
        try:
            await listener.open(self._deadline)
        except ConfigurationError as error:
            # Broadcasts only save time: a user without the right to declare a queue works without them.
            log.warning("rabbitmq.broadcasts_not_received", reason=error.message, hint=error.hint)
        self._listeners.append(listener)
        return listener

    def _doubt(self, keys: Collection[str]) -> None:
        """Check the topology soon: messages with these routing keys came back, or (no keys) an exchange may be
        missing. Keys that are not ours are ignored."""
        if not keys or not {DEAD, EVENT_RECEIVED, *self._known}.isdisjoint(keys):
            self._doubted.set()

    async def _look_after_topology(self) -> None:
        """Declare queues or bindings again that an operator deleted while no client reconnected. If another program
        declares the topology, log what is missing."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._looking_after * random.uniform(0.8, 1.2)):
                    await self._doubted.wait()
            self._doubted.clear()
            try:
                connection = await self._consuming.connection(wait=RECONNECT_WAIT)
                if not await self._bound_again(connection):
                    await asyncio.sleep(SETTLED)
                    await self._prepare(connection)
                for listener in self._listeners:
                    await listener.bind()
                self._missing = ""
            except ConfigurationError as error:
                if error.message != self._missing:  # log each problem once, not once a look
                    log.error("rabbitmq.topology", reason=error.message, hint=error.hint)
                self._missing = error.message
            except ConnectionFailed as error:
                log.debug("rabbitmq.topology_not_looked_at", reason=error.message)
            await asyncio.sleep(min(1.0, self._looking_after))  # at most one check a second

    async def _bound_again(self, connection: Connection) -> bool:
        """Bind all queues again. Return True if every queue exists."""
        if not self._topology.declares:
            return False
        async with answered():
            channel = await connection.channel(publisher_confirms=False)
        try:
            await self._topology.exchanges(channel)
            for queue in {DEAD, EVENT_RECEIVED, *self._known}:
                await self._topology.bind(channel, queue)
        except ConnectionFailed as error:
            if isinstance(error.__cause__, ChannelNotFoundEntity):
                return False
            raise
        finally:
            await close_channel(channel)
        return True

    async def _prepare(self, connection: Connection) -> None:
        """Declare all objects, on every new connection and at intervals: the broker may have lost them."""
        async with answered():
            channel = await connection.channel(publisher_confirms=False)
        try:
            await self._topology.prepare(channel)
            for queue in self._known:
                await self._topology.queue(channel, queue)
        finally:
            await close_channel(channel)
