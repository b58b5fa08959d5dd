"""The conversion of messages into AMQP, and of AMQP deliveries back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from aiormq.abc import DeliveredMessage
from pamqp.commands import Basic
from pamqp.encode import encode_table_value

from penstock.messaging.transports import (
    OUR_HEADERS,
    QUEUE_HEADER,
    REASON_HEADER,
    UNREADABLE,
    Delivery,
    Message,
)
from penstock.messaging.transports.rabbitmq.topology import DIED, Names
from penstock.messaging.transports.rabbitmq.undecodable import UNDECODABLE
from penstock.store.outbox.queues import DEAD

JSON = "application/json"
APP_ID = "penstock"
PERSISTENT = 2

BROKERS_OWN = frozenset({"x-delivery-count", "x-acquired-count", "x-death"})
"""Headers that RabbitMQ adds to a delivery. A published copy must not have them."""

KEY_HEADER = "x-penstock-routing-key"
"""A header of a dead letter that Penstock published: the message's original routing key."""

USER_HEADER = "x-penstock-user"
"""A header of a dead letter that Penstock published: the user that published the message. A copy cannot have the
property itself, since RabbitMQ refuses a `user_id` other than the connection's user."""

REASONS = frozenset({"rejected", "expired", "delivery_limit", "maxlen"})
"""The reasons for which RabbitMQ dead-letters a message."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message and its destination. If no queue accepts a mandatory message, the broker returns it."""

    exchange: str
    routing_key: str
    properties: Basic.Properties
    body: bytes
    mandatory: bool = True


def outgoing(message: Message, names: Names) -> Outgoing:
    exchange, mandatory = names.route(message.queue)
    return Outgoing(
        exchange=exchange,
        routing_key=message.queue,
        body=message.body,
        mandatory=mandatory,
        properties=Basic.Properties(
            content_type=JSON,
            delivery_mode=PERSISTENT,
            message_id=message.id,
            message_type=message.type,
            correlation_id=message.correlation_id,
            timestamp=datetime.now(UTC),
            app_id=APP_ID,
            headers=dict(message.headers),
        ),
    )


def broadcast(body: bytes, names: Names) -> Outgoing:
    properties = Basic.Properties(content_type=JSON, message_id=uuid4().hex, app_id=APP_ID)
    return Outgoing(names.control_exchange, "", properties, body, mandatory=False)


def dead_letter(delivery: Delivery, reason: str, names: Names) -> Outgoing:
    """Return a copy for the dead letters, with all that is needed to publish it again: its queue, id, type and
    headers."""
    headers = {
        name: _carried(value)
        for name, value in delivery.headers.items()
        if name not in BROKERS_OWN and not name.startswith("x-first-death")
    }
    key = delivery.routing_key or delivery.queue
    headers |= {REASON_HEADER: reason, QUEUE_HEADER: delivery.queue, KEY_HEADER: key}
    if delivery.user_id is not None:
        headers[USER_HEADER] = delivery.user_id
    return Outgoing(
        exchange=names.dead_exchange,
        routing_key=DEAD,  # the sender chose the message's own key, which may lead to any queue
        body=delivery.body,
        properties=Basic.Properties(
            content_type=delivery.content_type,
            delivery_mode=PERSISTENT,
            message_id=delivery.id or uuid4().hex,  # without an id, the broker cannot return it as unroutable
            message_type=delivery.type,
            timestamp=datetime.now(UTC),
            app_id=delivery.app_id,
            headers=headers,
        ),
    )


def _carried(value: Any) -> Any:
    """Return a header's value, or its `repr` if our library cannot encode it: another client may have sent it, and
    the message must still become a dead letter."""
    try:
        encode_table_value(value)
    except (TypeError, ValueError, OverflowError):
        return repr(value)
    return value


def delivery(message: DeliveredMessage, queue: str, names: Names) -> Delivery:
    properties = message.header.properties
    raw_headers: dict[str, Any] = dict(properties.headers or {})
    headers = {name: value for name, value in raw_headers.items() if not name.startswith(OUR_HEADERS)}
    key, user = message.routing_key, properties.user_id
    if queue == DEAD:
        if key == DEAD:
            user = raw_headers.get(USER_HEADER)
        origin = _origin(key or "", raw_headers)
        headers |= {QUEUE_HEADER: origin.queue, REASON_HEADER: origin.reason}
        key = origin.routing_key
    if properties.content_type == UNDECODABLE:
        headers[UNREADABLE] = "the AMQP properties cannot be decoded"
    return Delivery(
        queue=queue,
        body=message.body,
        tag=(message.channel, message.delivery_tag),
        id=properties.message_id,
        type=properties.message_type,
        app_id=properties.app_id,
        user_id=user or None,
        content_type=properties.content_type,
        routing_key=key,
        attempts=_attempts(headers, bool(message.redelivered)),
        headers=headers,
    )


def _attempts(headers: Mapping[str, Any], redelivered: bool) -> int:
    """Return the number of earlier deliveries. Quorum queues count them; a classic queue only tells whether there was
    one."""
    count = headers.get("x-delivery-count")
    return count if isinstance(count, int) and count >= 0 else int(redelivered)


@dataclass(frozen=True, slots=True)
class _Origin:
    """The origin of a dead letter: its logical queue, the reason, and its routing key there."""

    queue: str
    reason: str
    routing_key: str | None


def _origin(key: str, headers: Mapping[str, Any]) -> _Origin:
    """Return the origin of a dead letter. Only Penstock and the broker can publish to the dead exchange. The broker
    takes the routing key from the arguments of the queue on which the message died, not from the message.

    So all headers are trusted if Penstock published the copy (key `dead`). If the broker dead-lettered it (key
    `died.<queue>`), only the newest death is trusted, which the broker wrote. A message with any other key was
    published by a foreign program.
    """
    if key == DEAD:
        values = {name: str(headers.get(name) or "unknown") for name in (QUEUE_HEADER, REASON_HEADER)}
        original = headers.get(KEY_HEADER)
        return _Origin(
            values[QUEUE_HEADER], values[REASON_HEADER], original if isinstance(original, str) else None
        )
    deaths = headers.get("x-death")
    latest = deaths[0] if isinstance(deaths, list) and deaths and isinstance(deaths[0], dict) else {}
    reason = str(latest.get("reason"))
    keys = latest.get("routing-keys")
    return _Origin(
        key.removeprefix(DIED) if key.startswith(DIED) else "unknown",
        reason if reason in REASONS else "unknown",
        keys[0] if isinstance(keys, list) and keys and isinstance(keys[0], str) else None,
    )
