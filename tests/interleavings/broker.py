"""Brokers that are none: one that takes nothing, and one that does whatever a transport may do."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Sequence

from penstock.errors import ConnectionFailed
from penstock.messaging.transports import Delivery, Message, Subscription


class Silent:
    """Takes nothing: what is staged stays in the outbox, as when a process dies right after its commit."""

    name = "silent"
    healthy = True
    outbox_is_queue = False

    async def open(self) -> None: ...

    async def publish(self, messages: Sequence[Message]) -> list[bool]:
        return [False] * len(messages)

    def wake(self, names: Collection[str]) -> None: ...

    async def subscribe(self, queue: str, prefetch: int) -> Subscription:
        raise NotImplementedError

    async def declare(self, queue: str) -> None: ...

    async def depth(self, queue: str) -> int:
        return 0

    async def broadcast(self, body: bytes) -> None: ...

    async def listen(self) -> Subscription:
        raise NotImplementedError

    async def close(self) -> None: ...


class Fickle(Silent):
    """Drops what it was given and says so, keeps it and does not say so, loses the connection in between; delivers late,
    twice and in any order. What it confirmed it delivers; but one that `loses` forgets some of it, like a broker whose
    disk is gone."""

    name = "fickle"

    def __init__(self, draw: random.Random, loses: float = 0.0) -> None:
        self._draw, self._loses = draw, loses
        self._waiting: list[Message] = []
        self.did: dict[str, int] = {}

    async def publish(self, messages: Sequence[Message]) -> list[bool]:
        confirmed = []
        for message in messages:
            if self._does("cut", 0.05):
                raise ConnectionFailed("the connection closed while a call waited for its answer")
            dropped, unsaid = self._does("dropped", 0.15), self._does("not confirmed", 0.1)
            if not dropped and not (not unsaid and self._does("lost", self._loses)):
                self._waiting.append(message)
            confirmed.append(not dropped and not unsaid)
        return confirmed

    def next(self, queues: Iterable[str]) -> list[Delivery]:
        """Return the next deliveries of these queues: some of one of them, in any order; perhaps nothing yet."""
        messages = [message for message in self._waiting if message.queue in queues]
        if not messages or self._does("late", 0.15):
            return []
        queue = self._draw.choice(messages).queue
        messages = [message for message in messages if message.queue == queue]
        sample = self._draw.sample(messages, self._draw.randint(1, len(messages)))
        if len(messages) > 1:
            self._count("in another order")
        for message in sample:
            if not self._does("twice", 0.2):
                self._waiting.remove(message)
        return [Delivery(queue, m.body, n, m.id, m.type) for n, m in enumerate(sample)]

    def holds(self, queues: Iterable[str]) -> bool:
        return any(message.queue in queues for message in self._waiting)

    def _does(self, what: str, chance: float) -> bool:
        if self._draw.random() >= chance:
            return False
        self._count(what)
        return True

    def _count(self, what: str) -> None:
        self.did[what] = self.did.get(what, 0) + 1


class Settled:
    """The subscription of deliveries that are settled as soon as they are taken: what comes again is drawn."""

    def __init__(self, queue: str) -> None:
        self.queue = queue
        self.dead: list[str] = []

    async def receive(self, limit: int) -> list[Delivery]:
        raise NotImplementedError

    async def ack(self, deliveries: Sequence[Delivery]) -> None: ...

    async def dead_letter(self, deliveries: Sequence[Delivery], reason: str) -> None:
        self.dead.append(reason)

    async def resize(self, prefetch: int) -> None: ...

    async def close(self) -> None: ...
