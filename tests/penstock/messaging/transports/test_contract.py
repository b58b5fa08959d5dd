"""The contract of every transport. Each test runs on each of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from penstock.messaging.transports import QUEUE_HEADER, REASON_HEADER, Transport
from penstock.store.outbox import queues
from tests.penstock.messaging.transports.conftest import DELIVERY_LIMIT
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


async def test_a_message_is_delivered_as_it_was_published(transport: Transport) -> None:
    subscription = await transport.subscribe(QUEUE, 10)
    sent = message('{"ids": [1]}', headers={"traceparent": "00-1-2-01"})
    assert await transport.publish([sent]) == [True]
    [delivery] = await receive(subscription, 1)
    assert (delivery.body, delivery.id, delivery.type) == (sent.body, sent.id, sent.type)
    assert delivery.queue == QUEUE
    assert delivery.headers["traceparent"] == "00-1-2-01"
    assert delivery.content_type == "application/json"
    assert delivery.app_id == "penstock"
    assert delivery.attempts == 0


async def test_a_message_published_before_any_consumer_waits(transport: Transport) -> None:
    await transport.declare(QUEUE)
    assert await transport.publish([message("early")]) == [True]
    subscription = await transport.subscribe(QUEUE, 10)
    assert bodies(await receive(subscription, 1)) == ["early"]


async def test_an_unacked_message_comes_again_after_a_close(transport: Transport) -> None:
    first = await transport.subscribe(QUEUE, 10)
    await transport.publish([message("again")])
    await receive(first, 1)
    await first.close()
    second = await transport.subscribe(QUEUE, 10)
    [delivery] = await receive(second, 1)
    assert delivery.body == b"again"
    assert delivery.attempts >= 1


async def test_an_acked_message_never_comes_again(transport: Transport) -> None:
    first = await transport.subscribe(QUEUE, 10)
    await transport.publish(numbered(5))
    await receive(first, 5, ack=True)
    await first.close()
    assert await nothing_comes(await transport.subscribe(QUEUE, 10))


async def test_acking_the_second_of_three_leaves_the_others(transport: Transport) -> None:
    first = await transport.subscribe(QUEUE, 10)
    await transport.publish(numbered(3))
    deliveries = await receive(first, 3)
    await first.ack([deliveries[1]])
    await first.close()
    second = await transport.subscribe(QUEUE, 10)
    assert sorted(bodies(await receive(second, 2))) == ["0", "2"]
    assert await nothing_comes(second)


async def test_acking_in_any_order_settles_exactly_those(transport: Transport) -> None:
    first = await transport.subscribe(QUEUE, 20)
    await transport.publish(numbered(9))
    deliveries = await receive(first, 9)
    await first.ack([deliveries[7], deliveries[0], deliveries[1]])
    await first.ack([deliveries[2], deliveries[5]])
    await first.ack([deliveries[3]])
    await first.close()
    second = await transport.subscribe(QUEUE, 20)
    assert sorted(bodies(await receive(second, 3))) == ["4", "6", "8"]
    assert await nothing_comes(second)


async def test_acking_twice_changes_nothing(transport: Transport) -> None:
    subscription = await transport.subscribe(QUEUE, 10)
    await transport.publish(numbered(2))
    first, second = await receive(subscription, 2)
    await subscription.ack([first])
    await subscription.ack([first])
    await subscription.ack([first, second])
    await transport.publish([message("after")])
    assert bodies(await receive(subscription, 1)) == ["after"]


async def test_a_dead_letter_arrives_with_its_reason(transport: Transport) -> None:
    subscription = await transport.subscribe(QUEUE, 10)
    dead = await transport.subscribe("dead", 10)
    sent = message("poison", headers={"traceparent": "00-1-2-01"})
    await transport.publish([message("good"), sent])
    deliveries = await receive(subscription, 2)
    await subscription.dead_letter([deliveries[1]], "not JSON")
    [letter] = await receive(dead, 1)
    assert letter.headers[REASON_HEADER] == "not JSON"
    assert letter.headers[QUEUE_HEADER] == QUEUE
    assert letter.headers["traceparent"] == "00-1-2-01"
    assert (letter.body, letter.id, letter.type) == (sent.body, sent.id, sent.type)
    await subscription.close()
    again = await transport.subscribe(QUEUE, 10)
    assert bodies(await receive(again, 1)) == ["good"]
    assert await nothing_comes(again)


async def test_a_message_delivered_too_often_becomes_a_dead_letter(transport: Transport) -> None:
    dead = await transport.subscribe("dead", 10)
    await transport.declare(QUEUE)
    await transport.publish([message("fatal")])
    for attempt in range(DELIVERY_LIMIT + 1):
        subscription = await transport.subscribe(QUEUE, 10)
        [delivery] = await receive(subscription, 1)
        assert delivery.attempts == attempt
        await subscription.close()
    last = await transport.subscribe(QUEUE, 10)
    taking = asyncio.create_task(last.receive(1))  # a transport may find out while it takes
    [letter] = await receive(dead, 1)
    taking.cancel()
    assert letter.body == b"fatal"
    assert letter.headers[REASON_HEADER] == "delivery_limit"
    assert letter.headers[QUEUE_HEADER] == QUEUE


async def test_an_unknown_queue_is_refused_and_the_others_are_not(transport: Transport) -> None:
    subscription = await transport.subscribe(QUEUE, 10)
    sent = [message("0"), message("lost", queue="no.such.queue"), message("1")]
    assert await transport.publish(sent) == [True, False, True]
    assert bodies(await receive(subscription, 2)) == ["0", "1"]


async def test_a_status_change_without_a_listener_is_fine(transport: Transport) -> None:
    for queue in (f"{queues.STATUS_MOVED}completed", queues.INQUIRY_CREATED):
        assert await transport.publish([message(queue=queue)]) == [True]


async def test_publishing_nothing_gives_nothing(transport: Transport) -> None:
    assert await transport.publish([]) == []


async def test_the_same_id_published_twice_at_once_is_confirmed_twice(transport: Transport) -> None:
    subscription = await transport.subscribe(QUEUE, 10)
    twice = [message("a", id="same"), message("b", id="same")]
    both, unroutable = await asyncio.gather(
        transport.publish(twice), transport.publish([message(id="same", queue="no.such.queue")])
    )
    assert both == [True, True]
    assert unroutable == [False]
    assert sorted(bodies(await receive(subscription, 2))) == ["a", "b"]


async def test_a_closed_subscription_gives_nothing(transport: Transport) -> None:
    subscription = await transport.subscribe(QUEUE, 10)
    waiting = asyncio.create_task(subscription.receive(10))
    await asyncio.sleep(0.1)
    await subscription.close()
    assert await waiting == []
    assert await subscription.receive(10) == []


async def test_two_subscriptions_compete_and_each_message_goes_to_one(
    transport: Transport, connect: Connect
) -> None:
    subscriptions = [await transport.subscribe(QUEUE, 5), await (await connect()).subscribe(QUEUE, 5)]
    got: list[list[str]] = [[], []]

    async def take(index: int) -> None:
        while batch := await subscriptions[index].receive(5):
            got[index] += bodies(batch)
            await asyncio.sleep(0.01)
            await subscriptions[index].ack(batch)

    takers = [asyncio.create_task(take(index)) for index in (0, 1)]
    await transport.publish(numbered(100))
    await until(lambda: len(got[0]) + len(got[1]) >= 100)
    for taker in takers:
        taker.cancel()
    assert sorted(got[0] + got[1], key=int) == [str(number) for number in range(100)]
    assert got[0]
    assert got[1]


async def test_a_broadcast_reaches_every_listener(transport: Transport, connect: Connect) -> None:
    other = await connect()
    listeners = [await transport.listen(), await other.listen(), await other.listen()]
    await transport.broadcast(b'{"type":"cancel.requested"}')
    for listener in listeners:
        [heard] = await receive(listener, 1, ack=True)
        assert heard.body == b'{"type":"cancel.requested"}'


async def test_a_broadcast_without_a_listener_is_fine(transport: Transport) -> None:
    await transport.broadcast(b"unheard")
    listener = await transport.listen()
    await transport.broadcast(b"heard")
    heard: list[str] = []
    while "heard" not in heard:  # the first one may still have been on its way
        heard += bodies(await receive(listener, 1))
