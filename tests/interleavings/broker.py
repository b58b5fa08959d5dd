"""Transports that are none."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.transports import Message, Subscription


class Silent:
    """Takes nothing: what is staged stays in the outbox, as when a process dies right after its commit."""

    name = "silent"
    healthy = True

    async def open(self) -> None: ...

    async def publish(self, messages: Sequence[Message]) -> list[bool]:
        return [False] * len(messages)

    async def subscribe(self, queue: str, prefetch: int) -> Subscription:
        raise NotImplementedError

    async def declare(self, queue: str) -> None: ...

    async def depth(self, queue: str) -> int:
        return 0

    async def broadcast(self, body: bytes) -> None: ...

    async def listen(self) -> Subscription:
        raise NotImplementedError

    async def close(self) -> None: ...
