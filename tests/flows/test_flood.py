"""Good events among a flood of bad ones of every kind: each good one is handled, each bad one is kept with its reason, and
none keeps another one back.

PENSTOCK_TEST_FLOOD=20000 sends so many bad ones, and a twentieth of that good ones; `-s` prints how long it took.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import orjson
import pika

from tests.flows import shop
from tests.flows.installation import Installation
from tests.penstock.messaging.transports.broker import plain_pika

BAD = int(os.environ.get("PENSTOCK_TEST_FLOOD", 1000))
GOOD = BAD // 20
Sent = tuple[str, bytes, dict[str, Any]]
"""A routing key, a body, and properties."""


def order(number: int) -> bytes:
    return orjson.dumps({"id": number, "amount": 200})


KINDS: dict[str, Callable[[int], Sent]] = {
    "no JSON": lambda n: ("shop.order_placed", b"{%d" % n, {}),
    "unknown trigger": lambda n: ("shop.nothing", order(n), {}),
    "empty message id": lambda n: ("shop.order_placed", order(n), {"message_id": ""}),
    "NUL in the message id": lambda n: ("shop.order_placed", order(n), {"message_id": f"a\0{n}"}),
    "NUL in the app id": lambda n: ("shop.order_placed", order(n), {"app_id": f"a\0{n}"}),
    "NUL in the routing key": lambda n: (f"shop.\0{n}", order(n), {}),
    "NUL in the payload": lambda n: ("shop.order_placed", b'{"id": %d, "a": "\\u0000"}' % n, {}),
    "tenant of two": lambda n: ("shop.order_placed", order(n), {"headers": {"tenant": f"a::{n}"}}),
    "NUL in the tenant": lambda n: ("shop.order_placed", order(n), {"headers": {"tenant": f"a\0{n}"}}),
    "long tenant": lambda n: ("shop.order_placed", order(n), {"headers": {"tenant": "a" * 1000}}),
    "tenant that is not text": lambda n: ("shop.order_placed", order(n), {"headers": {"tenant": {"a": n}}}),
    "no such payload": lambda n: ("shop.order_placed", orjson.dumps({"id": f"{n}"}), {}),
    "deep payload": lambda n: ("shop.order_placed", b"[" * 200 + b"%d" % n + b"]" * 200, {}),
    "large payload": lambda n: ("shop.order_placed", b'{"id": %d, "a": "%s"}' % (n, b"a" * 300_000), {}),
    "id of another": lambda n: ("shop.order_placed", order(-n - 1), {"message_id": "first"}),
    "odd headers": lambda n: ("shop.nothing", order(n), {"headers": {"a": [1, {"b": None}], "x-death": n}}),
}
RARE = {"large payload": 50}
"""Kinds of which only every so many-th is sent, as others would be measured."""


async def test_a_flood_of_bad_events_keeps_no_good_one_back(database: str, vhost: str) -> None:
    async with Installation(database, vhost, log_level="critical") as house:
        await house.apply(*shop.ALL)
        await (await house.parts()).transport.declare("event.received")
        bad = 0
        with plain_pika(vhost) as channel:

            def send(key: str, body: bytes, properties: dict[str, Any]) -> None:
                channel.basic_publish("penstock.events", key, body, pika.BasicProperties(**properties))

            send("shop.order_placed", order(0), {"message_id": "first"})
            for number in range(BAD):
                name, make = list(KINDS.items())[number % len(KINDS)]
                if number // len(KINDS) % RARE.get(name, 1) == 0:
                    send(*make(number))
                    bad += 1
                if number % 20 == 0:
                    send("shop.order_placed", order(number), {"message_id": f"good-{number}"})
        began = time.monotonic()
        await house.executor()
        await house.worker(*shop.ALL)
        await house.until(
            "select 1 from execution where status = 'completed' having count(*) = $1", GOOD + 1, seconds=300
        )
        await house.until("select 1 from dead_letter having sum(count) >= $1", bad, seconds=300)
        print(f"\n{bad} bad and {GOOD} good events: {time.monotonic() - began:.1f} s")
        reasons = [row["reason"] for row in await house.rows("select distinct reason from dead_letter")]
        assert not [reason for reason in reasons if "Error:" in reason], "PostgreSQL had to say it"
        await house.sound()
