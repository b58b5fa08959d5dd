"""Whatever is put on the broker by somebody else: it becomes an event or a dead letter, once, and stops nobody."""

from __future__ import annotations

import asyncio
import datetime
import decimal
import json
from collections.abc import Iterator
from typing import Any

import orjson
import pika
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import Rule, Trigger
from penstock.schemas.values import storable
from penstock.transports import Delivery
from penstock_executor.handlers.dead import letter_of
from tests.flows import shop
from tests.flows.installation import Installation
from tests.penstock.transports.broker import plain_pika

anything = Trigger("shop.anything")
on_anything = Rule(
    "shop.on_anything", trigger=anything, action=shop.charge, params={"order": "{{ payload.id }}"}
)
DEEP = 200_000
BODIES: list[tuple[str, bytes]] = [
    ("deep arrays", b"[" * DEEP + b"]" * DEEP),
    ("deep objects", b'{"a":' * DEEP + b"1" + b"}" * DEEP),
    ("a million items", b"[" + b",".join([b"1"] * 10**6) + b"]"),
    ("a large text", b'"' + b"x" * 10**7 + b'"'),
    ("a huge exponent", b'{"id": 1e999999999}'),
    ("many digits", b'{"id": ' + b"9" * 10**6 + b"}"),
    ("NUL", b'{"id": "a\\u0000b"}'),
    ("half a surrogate", b'{"id": "\\ud800"}'),
    ("not UTF-8", b'{"id": "\xff"}'),
    ("NaN", b'{"id": NaN}'),
    ("nothing", b""),
    ("one key twice", b'{"id": 1, "id": ' + b"[" * 5000 + b"]" * 5000 + b"}"),
]
PROPERTIES: list[tuple[str, dict[str, Any]]] = [
    ("NUL in an id", {"message_id": "a\0b"}),
    ("NUL in a type", {"type": "a\0b", "message_id": "t"}),
    ("NUL in a header", {"headers": {"a\0b": "c\0d", "x-penstock-reason": "e\0f"}}),
    ("NUL in a tenant", {"headers": {"tenant": "a\0b"}}),
    ("a tenant that is none", {"headers": {"tenant": {"a": ["b"]}}}),
    ("a long tenant", {"headers": {"tenant": "t" * 50_000}}),
    ("a death of no kind", {"headers": {"x-death": "boom"}}),
    ("a death that is a number", {"headers": {"x-death": [3], "x-first-death-queue": 7}}),
    ("odd values", {"headers": {"n": decimal.Decimal("1.5"), "t": datetime.datetime(2026, 1, 1), "b": b"\xff", "l": [None]}}),
    ("a count of its own", {"headers": {"x-delivery-count": -5, "x-penstock-queue": "work.default"}}),
]  # fmt: skip


async def test_every_hostile_message_is_kept_once_and_stops_nobody(database: str, vhost: str) -> None:
    async with Installation(database, vhost, delivery_limit=20) as house:
        await house.start(*shop.ALL, anything, on_anything)
        await house.client.run("shop.charge", {"order": 1}, timeout=20)  # by now all queues are declared
        with plain_pika(vhost) as channel:
            for name, body in BODIES:
                channel.basic_publish(
                    "penstock.events", "shop.anything", body, pika.BasicProperties(message_id=name)
                )
            for _, given_ in PROPERTIES:
                properties = pika.BasicProperties(**given_)
                body = json.dumps({"id": repr(given_)}).encode()
                channel.basic_publish("penstock.events", "shop.no_such", body, properties)
                channel.basic_publish("penstock.events", "shop.anything", body, properties)
                for exchange, key in (("penstock.dead", "boom"), ("penstock", "execution.requested")):
                    channel.basic_publish(exchange, key, body, properties)
            channel.basic_publish(
                "penstock.events", "shop.anything", b'{"id": 7}', pika.BasicProperties(message_id="good")
            )
        await house.until("select 1 from result where result #>> '{order}' = '7'", seconds=60)
        least = len(BODIES) + 3 * len(PROPERTIES)
        await house.until("select 1 from dead_letter having count(*) >= $1", least, seconds=60)
        parts = await house.parts()
        for queue in ("event.received", "execution.requested", "dead"):
            await empty(parts.transport, queue)
        rows = await house.rows("select queue, reason, message_id, count from dead_letter")
        assert max(row["count"] for row in rows) <= 4, "one goes round and round"
        await house.quiet(60)
        await house.sound()


async def empty(transport: Any, queue: str) -> None:
    """Nothing is in this queue, and nothing comes back to it."""
    async with asyncio.timeout(60):
        quiet = 0
        while quiet < 3:
            quiet = quiet + 1 if await transport.depth(queue) == 0 else 0
            await asyncio.sleep(0.1)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.datetimes()
    | st.decimals(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(
    (
        "x-death",
        "x-penstock-reason",
        "x-penstock-queue",
        "x-first-death-queue",
        "x-first-death-reason",
        "tenant",
        "a",
    )
)


@settings(max_examples=150)
@given(st.dictionaries(NAMES | st.text(), VALUES, max_size=5), st.binary(max_size=30), st.none() | st.text())
def test_any_headers_make_a_letter_that_postgresql_takes(
    headers: dict[str, Any], body: bytes, text: str | None
) -> None:
    letter = letter_of(Delivery("dead", body, None, id=text, type=text, headers=headers))
    for kept in (letter.queue, letter.reason, letter.type, letter.message_id):
        assert kept is None or "\0" not in storable(kept)
    assert not any("\0" in text for text in texts(orjson.loads(orjson.dumps(storable(letter.headers)))))


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, one in value.items():
            yield name
            yield from texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from texts(one)
    elif isinstance(value, str):
        yield value


def test_the_memory_that_an_envelope_takes_is_bounded() -> None:
    from penstock import messages
    from penstock.errors import Undecodable

    for body in (b"[" * DEEP, b'{"v":1,"type":"x","ids":[' + b"0," * 10**6 + b"0]}", b'{"v":1e999999999}'):
        with pytest.raises(Undecodable):
            messages.decode(body)
