"""The contract of every transport about how much it holds at once. Each test runs on each of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from penstock.messaging.transports import Transport
from tests.penstock.messaging.transports.traffic import (
    QUEUE,
    bodies,
    message,
    nothing_comes,
    numbered,
    receive,
    until,
)

Connect = Callable[[], Awaitable[Transport]]


async def test_no_more_than_the_prefetch_is_held(transport: Transport) -> None:
    subscription = await transport.subscribe(QUEUE, 3)
    await transport.publish(numbered(10))
    held = await receive(subscription, 3)
    assert await nothing_comes(subscription)
    assert await transport.depth(QUEUE) == 7
    await subscription.ack(held[:2])
    assert len(await receive(subscription, 2)) == 2
    assert await transport.depth(QUEUE) == 5


async def test_a_prefetch_of_zero_stops_and_another_one_resumes(transport: Transport) -> None:
    subscription = await transport.subscribe(QUEUE, 10)
    await transport.publish([message("before")])
    [held] = await receive(subscription, 1)
    await subscription.resize(0)
    await transport.publish(numbered(4))
    assert await nothing_comes(subscription)
    assert await transport.depth(QUEUE) == 4
    await subscription.ack([held])
    await subscription.resize(10)
    assert len(await receive(subscription, 4)) == 4


async def test_a_subscription_may_begin_with_a_prefetch_of_zero(transport: Transport) -> None:
    subscription = await transport.subscribe(QUEUE, 0)
    await transport.publish(numbered(2))
    assert await nothing_comes(subscription)
    await subscription.resize(5)
    assert len(await receive(subscription, 2)) == 2


async def test_messages_before_a_stop_are_received_or_requeued(
    transport: Transport, connect: Connect
) -> None:
    subscription = await transport.subscribe(QUEUE, 4)
    await transport.publish(numbered(8))
    first = await receive(subscription, 1)
    await subscription.resize(0)
    await subscription.ack(first)
    other = await (await connect()).subscribe(QUEUE, 100)
    got: list[str] = bodies(first)

    async def take(stopped: bool) -> None:
        source = subscription if stopped else other
        while batch := await source.receive(100):
            await source.ack(batch)
            got.extend(bodies(batch))

    takers = [asyncio.create_task(take(stopped)) for stopped in (True, False)]
    await until(lambda: len(got) >= 8)
    for taker in takers:
        taker.cancel()
    assert sorted(got) == [str(number) for number in range(8)]


async def test_a_lowered_prefetch_counts_unsettled_messages(transport: Transport) -> None:
    subscription = await transport.subscribe(QUEUE, 10)
    await transport.publish(numbered(10))
    held = await receive(subscription, 10)
    await subscription.resize(2)
    await transport.publish(numbered(5))
    await subscription.ack(held[:8])
    assert await nothing_comes(subscription)  # two are held
    await subscription.ack(held[8:])
    got = await receive(subscription, 2)
    assert await nothing_comes(subscription)
    await subscription.ack(got)
    assert len(await receive(subscription, 2)) == 2


async def test_a_raised_prefetch_lets_more_in(transport: Transport) -> None:
    subscription = await transport.subscribe(QUEUE, 1)
    await transport.publish(numbered(20))
    held = await receive(subscription, 1)
    for prefetch in range(2, 12):
        await subscription.resize(prefetch)
        held += await receive(subscription, 1)
        assert await transport.depth(QUEUE) == 20 - prefetch
    await subscription.ack(held)
    assert len(await receive(subscription, 9, ack=True)) == 9


async def test_receive_does_not_wait_for_more(transport: Transport) -> None:
    subscription = await transport.subscribe(QUEUE, 100)
    for number in range(3):
        await transport.publish([message(str(number))])
        assert bodies(await receive(subscription, 1)) == [str(number)]


async def test_receive_gives_no_more_than_it_was_asked_for(transport: Transport) -> None:
    subscription = await transport.subscribe(QUEUE, 100)
    await transport.publish(numbered(10))
    got: list[str] = []
    while len(got) < 10:
        batch = await subscription.receive(3)
        assert 1 <= len(batch) <= 3
        got += bodies(batch)
    assert sorted(got) == sorted(str(number) for number in range(10))
