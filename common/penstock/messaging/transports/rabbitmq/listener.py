"""The listener for broadcasts: best effort, through a queue that exists as long as its connection."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from uuid import uuid4

from aiormq.abc import AbstractChannel as Channel
from aiormq.abc import DeliveredMessage
from pamqp.commands import Basic

from penstock.messaging.transports import Delivery
from penstock.messaging.transports.rabbitmq import wire
from penstock.messaging.transports.rabbitmq.call_timeouts import answered
from penstock.messaging.transports.rabbitmq.channel import KeptChannel
from penstock.messaging.transports.rabbitmq.connection import Link
from penstock.messaging.transports.rabbitmq.topology import CONTROL, Names, explained

MOST_KEPT = 1000
"""The maximum number of broadcasts that wait to be received. Older ones are dropped."""


class Listener:
    """A Subscription to broadcasts, without anything to settle."""

    queue = CONTROL

    def __init__(self, link: Link, names: Names) -> None:
        self._names = names
        self._kept = KeptChannel(link, "listen", prepare=self._prepare, on_loss=lambda: None)
        self._arrived: deque[Delivery] = deque(maxlen=MOST_KEPT)
        self._wake = asyncio.Event()
        self._closed = False
        self._name: str | None = None

    async def open(self, deadline: float) -> None:
        await self._kept.open(deadline)

    async def receive(self, limit: int) -> list[Delivery]:
        while not self._arrived:
            if self._closed:
                await asyncio.sleep(0)  # a caller that loops on an empty list must not block the event loop
                return []
            self._wake.clear()
            await self._wake.wait()
        return [self._arrived.popleft() for _ in range(min(limit, len(self._arrived)))]

    async def ack(self, deliveries: Sequence[Delivery]) -> None:
        """Do nothing: a broadcast needs no ack."""

    async def dead_letter(self, deliveries: Sequence[Delivery], reason: str) -> None:
        """Do nothing: a broadcast is best effort."""

    async def resize(self, prefetch: int) -> None:
        """Do nothing: a listener receives all broadcasts."""

    async def close(self) -> None:
        self._closed = True
        await self._kept.close()
        self._wake.set()

    async def bind(self) -> None:
        """Bind the queue again, in case its binding was removed. Raises ConnectionFailed if the broker does not
        answer."""
        channel, name = self._kept.current, self._name
        if channel is not None and name is not None:
            async with answered():
                await channel.queue_bind(name, self._names.control_exchange)

    async def _prepare(self, channel: Channel) -> None:
        # A new name each time: the broker may still reserve the old queue for a connection that is gone.
        name = self._names.queue(f"{CONTROL}.{uuid4().hex}")
        with explained("queue", name):
            async with answered():
                await channel.queue_declare(
                    name, exclusive=True, auto_delete=True, arguments={"x-queue-type": "classic"}
                )
                await channel.queue_bind(name, self._names.control_exchange)
                channel.on_consumer_cancel_callbacks.add(self._on_cancel)
                await channel.basic_consume(name, self._on_message, no_ack=True)
        self._name = name

    async def _on_message(self, message: DeliveredMessage) -> None:
        self._arrived.append(wire.delivery(message, self.queue, self._names))
        self._wake.set()

    def _on_cancel(self, _: Basic.Cancel) -> None:
        self._kept.renew("the broker cancelled the listener")
