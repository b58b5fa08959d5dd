"""Proves that messages reach their consumers.

A consumer may be gone on the broker while its connection lives: nothing fails, nothing arrives, and the
process looks healthy. So each consumer's queue is asked now and then.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Collection

from penstock.errors import ConnectionFailed
from penstock.transports.rabbitmq.consumer import Consumer


async def watch(consumers: Collection[Consumer], interval: float) -> None:
    """Look at every consumer each `interval` seconds (jittered)."""
    seen: dict[Consumer, int] = {}
    while True:
        await asyncio.sleep(interval * random.uniform(0.8, 1.2))
        seen = {consumer: await look(consumer, seen.get(consumer), interval) for consumer in list(consumers)}


async def look(consumer: Consumer, before: int | None, interval: float) -> int:
    """One look. `before`: what `delivered` was at the look before; gives what it is now."""
    if not consumer.hungry or consumer.delivered != before:
        if consumer.delivered != before:
            consumer.stuck = 0
        return consumer.delivered
    try:
        if await starving(consumer, patience=min(1.0, interval / 5)):
            consumer.stuck += 1
            consumer.renew(f"messages wait in {consumer.queue} and do not arrive")
        else:
            consumer.stuck = 0
    except ConnectionFailed as error:
        if consumer.hungry:  # the channel is up and does not answer
            consumer.stuck += 1
            consumer.renew(f"no answer about {consumer.queue}: {error.message}")
    return consumer.delivered


async def starving(consumer: Consumer, *, patience: float) -> bool:
    """Messages wait and none of them arrives, now and `patience` seconds later."""
    delivered = consumer.delivered
    if await consumer.waiting() == 0:
        return False
    await asyncio.sleep(patience)
    return consumer.hungry and consumer.delivered == delivered and await consumer.waiting() > 0
