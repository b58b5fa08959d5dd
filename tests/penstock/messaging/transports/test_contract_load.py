"""The contract of every transport with many and large messages, and at its end. Each test runs on each of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from penstock.messaging.transports import Transport
from tests.penstock.messaging.transports.traffic import QUEUE, bodies, message, numbered, receive

Connect = Callable[[], Awaitable[Transport]]


async def test_depth_counts_waiting_messages(transport: Transport) -> None:
    await transport.declare(QUEUE)
    assert await transport.depth(QUEUE) == 0
    await transport.publish(numbered(7))
    assert await transport.depth(QUEUE) == 7
    subscription = await transport.subscribe(QUEUE, 3)
    held = await receive(subscription, 3)
    assert await transport.depth(QUEUE) == 4
    await subscription.ack(held)
    await receive(subscription, 3)
    assert await transport.depth(QUEUE) == 1


async def test_one_consumer_gets_a_queue_in_order(transport: Transport) -> None:
    subscription = await transport.subscribe(QUEUE, 50)
    for batch in range(5):
        assert all(await transport.publish([message(f"{batch}.{number}") for number in range(40)]))
    got = bodies(await receive(subscription, 200, ack=True))
    assert got == [f"{batch}.{number}" for batch in range(5) for number in range(40)]


async def test_a_thousand_messages_at_once_all_arrive(transport: Transport) -> None:
    subscription = await transport.subscribe(QUEUE, 200)
    assert await transport.publish(numbered(1000)) == [True] * 1000
    got = bodies(await receive(subscription, 1000, ack=True))
    assert sorted(got, key=int) == [str(number) for number in range(1000)]
    assert await transport.depth(QUEUE) == 0


async def test_concurrent_publishers_are_each_told_of_their_own(transport: Transport) -> None:
    subscription = await transport.subscribe(QUEUE, 500)
    results = await asyncio.gather(
        *(transport.publish([message(str(number)), message(queue="no.such.queue")]) for number in range(100))
    )
    assert results == [[True, False]] * 100
    assert len(await receive(subscription, 100, ack=True)) == 100


async def test_closing_the_transport_leaves_nothing_unsettled(transport: Transport, connect: Connect) -> None:
    other = await connect()
    subscription = await other.subscribe(QUEUE, 10)
    await transport.publish(numbered(3))
    await receive(subscription, 2)
    await other.close()
    assert sorted(bodies(await receive(await transport.subscribe(QUEUE, 10), 3))) == ["0", "1", "2"]


async def test_a_large_body_survives(transport: Transport) -> None:
    subscription = await transport.subscribe(QUEUE, 10)
    large = bytes(range(256)) * 2048
    assert await transport.publish([message("small"), message(large), message("after")]) == [True] * 3
    got = await receive(subscription, 3)
    assert [delivery.body for delivery in got] == [b"small", large, b"after"]


async def test_an_open_transport_is_healthy_and_a_closed_one_takes_nothing(connect: Connect) -> None:
    transport = await connect()
    await transport.subscribe(QUEUE, 10)
    assert transport.healthy
    await transport.close()
    assert not transport.healthy


async def test_closing_twice_changes_nothing(connect: Connect) -> None:
    transport = await connect()
    await transport.close()
    await transport.close()
