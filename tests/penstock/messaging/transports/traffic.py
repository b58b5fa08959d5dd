"""Messages to send, and ways to wait for those that come."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

from penstock.messaging.transports import Delivery, Message, Subscription

PATIENCE = 30.0
"""Seconds after which something that should have happened counts as not happening."""

QUEUE = "execution.requested"


def message(body: str | bytes = b"{}", *, queue: str = QUEUE, **rest: Any) -> Message:
    body = body.encode() if isinstance(body, str) else body
    return Message(**{"queue": queue, "body": body, "id": uuid4().hex, "type": "execution.requested", **rest})


def numbered(count: int, *, queue: str = QUEUE) -> list[Message]:
    return [message(str(number), queue=queue) for number in range(count)]


def bodies(deliveries: list[Delivery]) -> list[str]:
    return [delivery.body.decode() for delivery in deliveries]


async def receive(
    subscription: Subscription, count: int, *, ack: bool = False, patience: float = PATIENCE
) -> list[Delivery]:
    """Exactly `count` deliveries, settled as they come if `ack`."""
    got: list[Delivery] = []
    async with asyncio.timeout(patience):
        while len(got) < count:
            batch = await subscription.receive(count - len(got))
            if ack:
                await subscription.ack(batch)
            got += batch
    return got


async def nothing_comes(subscription: Subscription) -> bool:
    """Nothing arrives for a while. What does arrive is lost to the caller."""
    try:
        async with asyncio.timeout(0.4):
            return await subscription.receive(1) == []
    except TimeoutError:
        return True


async def until(
    holds: Callable[[], bool] | Callable[[], Awaitable[bool]], patience: float = PATIENCE
) -> None:
    """Wait for something to become true."""
    async with asyncio.timeout(patience):
        while True:
            now = holds()
            if now if isinstance(now, bool) else await now:
                return
            await asyncio.sleep(0.05)
