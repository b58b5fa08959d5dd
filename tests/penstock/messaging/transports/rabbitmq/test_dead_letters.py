"""Dead letters really arrive: those that RabbitMQ makes, too."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pika
import pytest

from penstock.errors import ConnectionFailed
from penstock.messaging.transports import QUEUE_HEADER, REASON_HEADER
from penstock.messaging.transports.rabbitmq import RabbitMQTransport
from tests.penstock.messaging.transports.broker import plain_pika
from tests.penstock.messaging.transports.traffic import (
    QUEUE,
    bodies,
    message,
    nothing_comes,
    numbered,
    receive,
    until,
)


@pytest.fixture
async def transport(vhost: str) -> AsyncIterator[RabbitMQTransport]:
    transport = RabbitMQTransport(vhost, delivery_limit=3)
    await transport.open()
    yield transport
    await transport.close()


async def test_a_rejected_message_arrives(transport: RabbitMQTransport, vhost: str) -> None:
    await transport.declare(QUEUE)
    dead = await transport.subscribe("dead", 10)
    await transport.publish([message("refused", headers={"kept": "yes"})])
    with plain_pika(vhost) as channel:
        method, _, _ = next(channel.consume(f"penstock.{QUEUE}"))
        channel.basic_reject(method.delivery_tag, requeue=False)
        [letter] = await receive(dead, 1)
    assert letter.body == b"refused"
    assert letter.headers[REASON_HEADER] == "rejected"
    assert letter.headers[QUEUE_HEADER] == QUEUE
    assert letter.headers["kept"] == "yes"
    assert letter.headers["x-death"][0]["count"] == 1
    assert letter.routing_key == QUEUE


async def test_an_expired_message_arrives(transport: RabbitMQTransport, vhost: str) -> None:
    await transport.declare("work.default")
    dead = await transport.subscribe("dead", 10)
    with plain_pika(vhost) as channel:
        properties = pika.BasicProperties(expiration="1", delivery_mode=2)
        channel.basic_publish("penstock", "work.default", b"too late", properties)
    [letter] = await receive(dead, 1)
    assert letter.headers[REASON_HEADER] == "expired"
    assert letter.headers[QUEUE_HEADER] == "work.default"


async def test_a_poison_message_does_not_stop_the_others(transport: RabbitMQTransport) -> None:
    subscription = await transport.subscribe(QUEUE, 5)
    dead = await transport.subscribe("dead", 200)
    await transport.publish(numbered(100))
    good = 0
    while good < 90:
        for delivery in await subscription.receive(5):
            if delivery.body.endswith(b"7"):
                await subscription.dead_letter([delivery], "ends in seven")
            else:
                await subscription.ack([delivery])
                good += 1
    assert sorted(bodies(await receive(dead, 10)), key=int) == [str(n) for n in range(7, 100, 10)]


async def test_a_dead_letter_with_nowhere_to_go_stays_unsettled(
    transport: RabbitMQTransport, vhost: str
) -> None:
    subscription = await transport.subscribe(QUEUE, 5)
    await transport.publish([message("poison")])
    [delivery] = await receive(subscription, 1)
    with plain_pika(vhost) as channel:
        channel.queue_delete("penstock.dead")
        with pytest.raises(ConnectionFailed, match="1 of 1 messages") as caught:
            await subscription.dead_letter([delivery], "bad")
        assert caught.value.hint is not None
        assert "penstock.dead" in caught.value.hint
    dead = await transport.subscribe("dead", 5)
    await subscription.dead_letter([delivery], "bad")
    assert bodies(await receive(dead, 1, ack=True)) == ["poison"]
    await subscription.dead_letter([delivery], "bad")  # it is settled: nothing to do
    assert await nothing_comes(dead)


async def test_a_dead_letter_is_never_dropped_however_often_its_handler_fails(
    transport: RabbitMQTransport,
) -> None:
    subscription = await transport.subscribe(QUEUE, 5)
    await transport.publish([message("poison")])
    await subscription.dead_letter(await receive(subscription, 1), "bad")
    for attempt in range(25):  # more than the limit that RabbitMQ 4 sets by itself
        dead = await transport.subscribe("dead", 5)
        [letter] = await receive(dead, 1)
        assert letter.attempts == attempt
        await dead.close()

    async def waits_still() -> bool:
        return await transport.depth("dead") == 1

    await until(waits_still)


FORGED = {
    "x-penstock-queue": "work.default",
    "x-penstock-reason": "rejected",
    "x-penstock-routing-key": "work.default",
    "x-penstock-unreadable": "no",
    "x-first-death-queue": "penstock.work.default",
    "x-death": [
        {"queue": "penstock.work.default", "reason": "rejected", "count": 1, "routing-keys": ["work.default"]}
    ],
}


@pytest.mark.parametrize("key", ["shop.order_placed", "dead", "died.work.default", "work.default"])
async def test_a_producer_of_events_names_no_queue_of_ours(
    transport: RabbitMQTransport, vhost: str, key: str
) -> None:
    """Neither in headers nor in the routing key, when the broker dead-letters it, or a handler."""
    events, dead = await transport.subscribe("event.received", 1), await transport.subscribe("dead", 10)
    with plain_pika(vhost) as channel:
        channel.basic_publish("penstock.events", key, b"first", pika.BasicProperties(headers=FORGED))
        [first] = await receive(events, 1)
        properties = pika.BasicProperties(headers=FORGED, expiration="1", delivery_mode=2)
        channel.basic_publish("penstock.events", key, b"second", properties)
        [expired] = await receive(dead, 1, ack=True)
    await events.dead_letter([first], "refused")
    [refused] = await receive(dead, 1)
    assert not [name for name in first.headers if name.startswith("x-penstock")]
    assert (expired.body, refused.body) == (b"second", b"first")
    for letter, reason in ((expired, "expired"), (refused, "refused")):
        assert letter.headers[QUEUE_HEADER] == "event.received"
        assert letter.headers[REASON_HEADER] == reason
        assert letter.routing_key == key


async def test_a_foreign_message_among_the_dead_letters_has_no_origin(
    transport: RabbitMQTransport, vhost: str
) -> None:
    dead = await transport.subscribe("dead", 10)
    with plain_pika(vhost) as channel:
        channel.basic_publish("penstock.dead", "work.default", b"moved", pika.BasicProperties(headers=FORGED))
    [letter] = await receive(dead, 1)
    assert letter.headers[QUEUE_HEADER] == "unknown"
