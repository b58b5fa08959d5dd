"""Broadcasts by NOTIFY, received by the connections that listen at that moment."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

from penstock.messaging.transports import Delivery


class Listener:
    """A Subscription to broadcasts, without anything to settle."""

    queue = "control"

    def __init__(self, listeners: list[Listener]) -> None:
        self._listeners = listeners
        self._bodies: asyncio.Queue[bytes] = asyncio.Queue(1000)

    def push(self, body: bytes) -> None:
        with contextlib.suppress(
            asyncio.QueueFull
        ):  # dropped: the process finds the change in the database some seconds later
            self._bodies.put_nowait(body)

    async def receive(self, limit: int) -> list[Delivery]:
        bodies = [await self._bodies.get()]
        while len(bodies) < limit and not self._bodies.empty():
            bodies.append(self._bodies.get_nowait())
        return [Delivery(self.queue, body, None) for body in bodies]

    async def ack(self, deliveries: Sequence[Delivery]) -> None:
        """Do nothing: a broadcast needs no ack."""

    async def dead_letter(self, deliveries: Sequence[Delivery], reason: str) -> None:
        """Do nothing: a broadcast is best effort."""

    async def resize(self, prefetch: int) -> None:
        """Do nothing: a listener receives all broadcasts."""

    async def close(self) -> None:
        if self in self._listeners:
            self._listeners.remove(self)
