"""A watchdog that checks that messages reach their consumers.

A consumer may be gone on the broker while its connection lives: nothing fails, nothing arrives, and the process looks
healthy. So the queue of each consumer is checked at intervals.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Collection

from penstock.errors import ConnectionFailed
from penstock.messaging.transports.rabbitmq.consumer import Consumer

PATIENCE = 1.0
"""Seconds that a message may be on its way from the queue to its consumer."""


async def watch(consumers: Collection[Consumer], interval: float) -> None:
    """Check every consumer each `interval` seconds (jittered)."""
    counts: dict[Consumer, int] = {}
    while True:
        await asyncio.sleep(interval * random.uniform(0.8, 1.2))
        counts = {consumer: await look(consumer, counts.get(consumer)) for consumer in list(consumers)}


async def look(consumer: Consumer, last_count: int | None) -> int:
    """Check a consumer once. `last_count` was its `delivered` at the last check. Return the present value."""
    if not consumer.hungry or consumer.delivered != last_count:
        if consumer.delivered != last_count:
            consumer.stuck = 0
        return consumer.delivered
    try:
        if await starving(consumer):
            consumer.stuck += 1
            consumer.renew(f"messages wait in {consumer.queue} and do not arrive")
        else:
            consumer.stuck = 0
    except ConnectionFailed as error:
        if consumer.hungry:  # the consumer's own channel is up, and the broker does not answer
            consumer.stuck += 1
            consumer.renew(f"no answer about {consumer.queue}: {error.message}")
    return consumer.delivered


async def starving(consumer: Consumer) -> bool:
    """Return True if messages wait and none arrives, both now and PATIENCE seconds later."""
    delivered = consumer.delivered
    if await consumer.waiting() == 0:
        return False
    await asyncio.sleep(PATIENCE)
    return consumer.hungry and consumer.delivered == delivered and await consumer.waiting() > 0
