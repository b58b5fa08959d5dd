"""Any AMQP client may publish an event. None of them may stop us."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pika
import pytest

from penstock.messaging.transports import UNREADABLE, Delivery, Subscription
from penstock.messaging.transports.rabbitmq import RabbitMQTransport
from tests.penstock.messaging.transports.broker import plain_pika
from tests.penstock.messaging.transports.traffic import QUEUE, bodies, message, receive


@pytest.fixture
async def transport(vhost: str) -> AsyncIterator[RabbitMQTransport]:
    transport = RabbitMQTransport(vhost)
    await transport.open()
    yield transport
    await transport.close()


def mangled(**given: Any) -> pika.BasicProperties:
    """Properties with bytes in them that are not UTF-8."""
    properties = pika.BasicProperties(**given)
    sound = properties.encode
    properties.encode = lambda: [piece.replace(b"QQQQ", b"\xff\xfe\xfd\xfc") for piece in sound()]
    return properties


async def test_plain_pika_publishes_an_event(transport: RabbitMQTransport, vhost: str) -> None:
    subscription = await transport.subscribe("event.received", 10)
    with plain_pika(vhost) as channel:
        channel.basic_publish(
            exchange="penstock.events",
            routing_key="shop.order_placed",
            body=json.dumps({"order": 7}),
            properties=pika.BasicProperties(
                message_id="order-7", app_id="shop", content_type="application/json"
            ),
        )
    [delivery] = await receive(subscription, 1)
    assert delivery.queue == "event.received"
    assert delivery.routing_key == "shop.order_placed"
    assert (delivery.id, delivery.app_id) == ("order-7", "shop")
    assert json.loads(delivery.body) == {"order": 7}
    assert UNREADABLE not in delivery.headers


async def test_an_event_without_any_property_arrives(transport: RabbitMQTransport, vhost: str) -> None:
    subscription = await transport.subscribe("event.received", 10)
    with plain_pika(vhost) as channel:
        channel.basic_publish("penstock.events", "a.b", b"")
    [delivery] = await receive(subscription, 1)
    assert (delivery.id, delivery.type, delivery.app_id, delivery.content_type) == (None, None, None, None)
    assert delivery.body == b""
    await subscription.dead_letter([delivery], "no message id")
    [letter] = await receive(await transport.subscribe("dead", 1), 1)
    assert letter.routing_key == "a.b"


@pytest.mark.parametrize(
    "properties",
    [
        pika.BasicProperties(timestamp=1_700_000_000_000_000_000),  # nanoseconds
        pika.BasicProperties(timestamp=2**64 - 1, headers={"a": 1}),
        mangled(message_id="QQQQ"),
        mangled(message_id="m", headers={"QQQQ": 1}),
        mangled(content_type="application/json", headers={"a": "QQQQ"}),
        mangled(app_id="QQQQ", type="t", timestamp=3),
    ],
    ids=["nanoseconds", "far future", "message id", "header name", "header", "app id"],
)
async def test_properties_that_cannot_be_decoded_stop_no_consumer(
    transport: RabbitMQTransport, vhost: str, properties: pika.BasicProperties
) -> None:
    events = await transport.subscribe("event.received", 10)
    others = await transport.subscribe(QUEUE, 10)
    dead = await transport.subscribe("dead", 10)
    with plain_pika(vhost) as channel:
        channel.basic_publish("penstock.events", "a.b", b"body of the bad", properties)
        channel.basic_publish("penstock.events", "a.b", b"good", pika.BasicProperties(message_id="good"))
    got = {delivery.body: delivery for delivery in await _both(events)}
    bad, good = got[b"body of the bad"], got[b"good"]
    assert good.id == "good"
    if bad.headers.get(UNREADABLE):
        assert (bad.id, bad.type) == (None, None)
    await events.dead_letter([bad], "unreadable")
    await events.ack([good])
    assert bodies(await receive(dead, 1)) == ["body of the bad"]
    await transport.publish([message("still here")])
    assert bodies(await receive(others, 1)) == ["still here"]


async def test_a_routing_key_that_is_not_text_stops_no_consumer(
    transport: RabbitMQTransport, vhost: str
) -> None:
    events = await transport.subscribe("event.received", 10)
    with plain_pika(vhost) as channel:
        channel.basic_publish("penstock.events", b"a.\xff\xfe", b"odd")
        channel.basic_publish("penstock.events", "a.b", b"good")
    assert sorted({bytes(delivery.body) for delivery in await _both(events)}) == [b"good", b"odd"]


async def _both(events: Subscription) -> list[Delivery]:
    """The two messages, whichever came before and again after the connection was lost."""
    got: dict[bytes, Delivery] = {}
    while len(got) < 2:
        for delivery in await receive(events, 1):
            got[delivery.body] = delivery
    return list(got.values()) if len({d.tag[0] for d in got.values()}) == 1 else await _again(events, got)


async def _again(events: Subscription, got: dict[bytes, Delivery]) -> list[Delivery]:
    newest = max(got.values(), key=lambda delivery: delivery.attempts).tag[0]
    current = {d.body: d for d in got.values() if d.tag[0] is newest}
    while len(current) < 2:
        for delivery in await receive(events, 1):
            current[delivery.body] = delivery
    return list(current.values())
