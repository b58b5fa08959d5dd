"""The consumer of one queue, through lost connections, cancelled consumers and changes of the prefetch."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from uuid import uuid4

import structlog
from aiormq.abc import AbstractChannel as Channel
from aiormq.abc import DeliveredMessage
from pamqp.commands import Basic

from penstock.errors import ConnectionFailed
from penstock.messaging.transports import Delivery
from penstock.messaging.transports.rabbitmq import wire
from penstock.messaging.transports.rabbitmq.acks import acks
from penstock.messaging.transports.rabbitmq.call_timeouts import CALL_TIMEOUT, answered
from penstock.messaging.transports.rabbitmq.channel import KeptChannel
from penstock.messaging.transports.rabbitmq.connection import Link
from penstock.messaging.transports.rabbitmq.prefetch import Window
from penstock.messaging.transports.rabbitmq.publisher import Publisher
from penstock.messaging.transports.rabbitmq.topology import Topology
from penstock.store.session import crash_points

log = structlog.get_logger(__name__)

MOST_CONSUMERS = 4
"""The maximum number of consumers of a channel. A raised prefetch adds a consumer for the difference. At the maximum,
one consumer replaces all."""


BEHIND_MESSAGES = 120.0
"""Seconds that RabbitMQ has to answer behind large messages, each of which may wait until there is room for it."""


class Consumer:
    """A Subscription on RabbitMQ. A consumer has a channel of its own: closing that returns exactly the messages that
    it holds."""

    def __init__(
        self, queue: str, prefetch: int, most_bytes: int, link: Link, topology: Topology, publisher: Publisher
    ) -> None:
        self.queue = queue
        self.delivered = 0
        self.stuck = 0
        self._asked = prefetch
        self._window = Window(most_bytes)
        self._topology = topology
        self._publisher = publisher
        self._kept = KeptChannel(link, f"consume {queue}", prepare=self._prepare, on_loss=self._lost)
        self._channel: Channel | None = None
        self._arrived: deque[Delivery] = deque()
        self._wake = asyncio.Event()
        self._open_tags: dict[
            int, int
        ] = {}  # delivered and not settled, oldest first: tag -> bytes of the message
        self._last_tag = 0
        self._grants: dict[str, int] = {}  # consumer tag -> its prefetch
        self._granted_from = 1  # deliveries with a lower tag are of consumers that were cancelled since
        self._aligning = asyncio.Lock()
        self._aligner: asyncio.Task[None] | None = None
        self._settling = asyncio.Lock()
        self._asking = False
        self._holds_off = False
        """True if nothing is consumed until the next `receive`. With each lost connection, the unsettled messages count as
        delivered once more. While PostgreSQL does not answer nothing can be settled, and good messages would reach the
        delivery limit."""
        self.closed = False

    async def open(self, deadline: float) -> None:
        await self._kept.open(deadline)

    @property
    def healthy(self) -> bool:
        return self.closed or (self._kept.current is not None and self.stuck < 2)

    @property
    def hungry(self) -> bool:
        """Return True if the consumer has room, so that a message in the queue should reach it."""
        room = self._window.has_room and not self._aligning.locked()
        return bool(self._grants) and room and len(self._open_tags) < sum(self._grants.values())

    @property
    def _prefetch(self) -> int:
        """Return the number of messages that the consumer may hold now. A granted prefetch is not reduced when messages
        become larger, as a cancel loses messages that the queue is just sending. The window holds those back, and the
        next channel begins with a smaller prefetch."""
        return min(self._asked, max(self._window.messages, sum(self._grants.values())))

    async def receive(self, limit: int) -> list[Delivery]:
        self._asking = True
        if self._holds_off:
            self._holds_off = False
            self._realign()
        try:
            while not self._arrived:
                if self.closed:
                    await asyncio.sleep(
                        0
                    )  # a caller that loops on an empty list must not block the event loop
                    return []
                self._wake.clear()
                await self._wake.wait()
        finally:
            self._asking = False
        return [self._arrived.popleft() for _ in range(min(limit, len(self._arrived)))]

    async def ack(self, deliveries: Sequence[Delivery]) -> None:
        async with self._settling:  # acks are written in the order in which they were planned
            channel = self._channel
            tags = {
                tag for of, tag in (d.tag for d in deliveries) if of is channel and tag in self._open_tags
            }
            if channel is None or not tags:
                return
            crash_points.at("acking")
            plan = acks(self._open_tags, tags)
            self._window.settled([self._open_tags.pop(tag) for tag in tags])
            try:
                async with answered():
                    for tag, multiple in plan:
                        await channel.basic_ack(tag, multiple=multiple, wait=(tag, multiple) == plan[-1])
            except ConnectionFailed:
                return  # the channel is closing: the messages come again
            crash_points.at("acked")
        self._realign()

    async def dead_letter(self, deliveries: Sequence[Delivery], reason: str) -> None:
        """Publish copies first, then ack: a crash in between leaves two messages, never none."""
        channel = self._channel
        current = [d for d in deliveries if d.tag[0] is channel and d.tag[1] in self._open_tags]
        copies = [wire.dead_letter(d, reason, self._topology.names) for d in current]
        crash_points.at("burying")
        copied = await self._publisher.publish(copies)
        crash_points.at("buried")
        await self.ack([d for d, safe in zip(current, copied, strict=True) if safe])
        if not all(copied):
            raise ConnectionFailed(
                f"{copied.count(False)} of {len(copied)} messages could not be stored as dead letters",
                hint=f"They stay unsettled. Check the queue {self._topology.names.queue('dead')}.",
            )

    async def resize(self, prefetch: int) -> None:
        if prefetch != self._asked:
            self._asked = prefetch
            await self._align(at_once=True)

    async def close(self) -> None:
        self.closed = True
        if self._aligner is not None:
            self._aligner.cancel()
            await asyncio.wait([self._aligner])
        await self._kept.close()
        self._wake.set()

    async def waiting(self) -> int:
        """Return the number of messages in the queue, queried on the channel that should deliver them."""
        channel = self._channel
        if channel is None:
            raise ConnectionFailed("the channel is down")
        async with answered():
            return (
                await channel.queue_declare(self._topology.names.queue(self.queue), passive=True)
            ).message_count or 0

    def renew(self, why: str) -> None:
        self._kept.renew(why)

    async def _prepare(self, channel: Channel) -> None:
        await self._topology.queue(channel, self.queue)
        channel.on_consumer_cancel_callbacks.add(self._on_cancel)
        self._window.hold_back(channel)
        self._channel = channel
        async with self._aligning:
            await self._grant(channel, at_once=True)

    def _lost(self) -> None:
        self._holds_off = not self._asking and (self._holds_off or bool(self._open_tags))
        self._channel = None
        self._arrived.clear()  # the broker delivers these messages again
        self._open_tags.clear()
        self._window.emptied()
        self._grants.clear()
        self._last_tag = 0
        self._granted_from = 1

    def _realign(self) -> None:
        """Ask the broker for more messages, in a task. The broker's answer comes after the messages that are on their
        way, and these may wait until others are settled."""
        if sum(self._grants.values()) < self._prefetch and not self._aligning.locked():
            self._aligner = asyncio.create_task(self._align(at_once=False), name=f"align {self.queue}")

    async def _align(self, *, at_once: bool) -> None:
        """Make the broker grant the present prefetch."""
        async with self._aligning:
            channel = self._channel
            if channel is None:
                return  # the next channel is prepared with the new prefetch
            try:
                await self._grant(channel, at_once=at_once)
            except ConnectionFailed as error:
                self.renew(f"prefetch not changed: {error.message}")

    async def _grant(self, channel: Channel, *, at_once: bool) -> None:
        """Consume with exactly the prefetch, counting the unsettled messages of cancelled consumers.

        A prefetch belongs to a consumer and cannot be changed, and quorum queues refuse a prefetch for the channel.
        So more is granted by another consumer, and less by cancelling all and consuming again. The messages of
        cancelled consumers free their share when all of them are settled (or with `at_once`), not one by one.
        """
        granted = sum(self._grants.values())
        fragmented = granted < self._prefetch and len(self._grants) >= MOST_CONSUMERS
        if granted > self._prefetch or fragmented:
            for consumer in list(self._grants):
                async with answered(CALL_TIMEOUT if at_once else BEHIND_MESSAGES):
                    await channel.basic_cancel(consumer)
                self._grants.pop(consumer, None)
            self._granted_from = self._last_tag + 1
            granted = 0
        left_over = sum(1 for tag in self._open_tags if tag < self._granted_from)
        room = self._prefetch - granted - left_over
        if room > 0 and not self._holds_off and (at_once or granted == 0 or left_over == 0):
            await self._consume(channel, room, CALL_TIMEOUT if at_once else BEHIND_MESSAGES)

    async def _consume(self, channel: Channel, prefetch: int, timeout: float) -> None:
        consumer = f"{self.queue}.{uuid4().hex}"
        self._grants[consumer] = prefetch
        async with answered(timeout):
            await channel.basic_qos(prefetch_count=prefetch)
            await channel.basic_consume(
                self._topology.names.queue(self.queue), self._on_message, consumer_tag=consumer
            )

    async def _on_message(self, message: DeliveredMessage) -> None:
        """Store a delivery. Without an await, so that deliveries keep their order."""
        if message.channel is not self._channel or message.delivery_tag is None:
            return
        if message.delivery_tag != self._last_tag + 1:
            # An ack of several deliveries must not include one that was never seen.
            return self.renew("a delivery is missing")
        self._last_tag = message.delivery_tag
        self._open_tags[message.delivery_tag] = len(message.body)
        self.delivered += 1
        self._arrived.append(wire.delivery(message, self.queue, self._topology.names))
        self._wake.set()

    def _on_cancel(self, frame: Basic.Cancel) -> None:
        """Renew the channel, since the broker ended a consumer: the queue was deleted, or has no leader."""
        if self._grants.pop(frame.consumer_tag or "", None) is not None:
            self.renew("the broker cancelled the consumer")
