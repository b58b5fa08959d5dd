"""A broker short of memory blocks its publishers. That must neither hang them nor stop the acks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from structlog.testing import capture_logs

from penstock.messaging.transports.rabbitmq import RabbitMQTransport
from tests.penstock.messaging.transports.broker import short_of_memory
from tests.penstock.messaging.transports.traffic import (
    QUEUE,
    message,
    nothing_comes,
    numbered,
    receive,
    until,
)
from tests.servers.rabbitmq import RabbitMQ

Open = Callable[..., Awaitable[RabbitMQTransport]]


async def test_a_blocked_publish_ends_and_acks_still_pass(on_broker: Open, broker: RabbitMQ) -> None:
    transport = await on_broker(publish_timeout=1)
    subscription = await transport.subscribe(QUEUE, 3)
    assert await transport.publish(numbered(6)) == [True] * 6
    async with short_of_memory(broker):
        with capture_logs() as logged:
            async with asyncio.timeout(60):
                assert await transport.publish([message("late"), message("later")]) == [False, False]
                assert await transport.publish([message("last")]) == [False]
        assert transport.blocked
        assert [line["event"] for line in logged if "blocked" in line["event"]] == ["rabbitmq.blocked"]
        held = await receive(subscription, 3)
        await subscription.ack(held)
        assert len(await receive(subscription, 3, ack=True)) == 3  # the acks made room

    async def taken() -> bool:
        return await transport.publish([message("after")]) == [True]

    with capture_logs() as logged:
        await until(taken)
    assert transport.healthy
    assert not transport.blocked
    assert [line["event"] for line in logged if "blocked" in line["event"]] == ["rabbitmq.unblocked"]


async def test_a_dead_letter_that_cannot_be_written_is_not_lost(on_broker: Open, broker: RabbitMQ) -> None:
    transport = await on_broker(publish_timeout=1)
    subscription = await transport.subscribe(QUEUE, 10)
    await transport.publish([message("poison")])
    [delivery] = await receive(subscription, 1)
    async with short_of_memory(broker):
        [refused] = await asyncio.gather(subscription.dead_letter([delivery], "bad"), return_exceptions=True)
        assert refused is not None

    async def buried() -> bool:
        [refused] = await asyncio.gather(subscription.dead_letter([delivery], "bad"), return_exceptions=True)
        return refused is None

    await until(buried)
    dead = await transport.subscribe("dead", 10)
    assert (await receive(dead, 1))[0].body == b"poison"
    await subscription.close()
    assert await nothing_comes(await transport.subscribe(QUEUE, 10))
