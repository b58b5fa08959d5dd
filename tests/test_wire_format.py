"""The statements of docs/wire-format.md are true: its example publishes an event without a line of ours."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import orjson
import pytest

from penstock import Rule, Trigger, action
from penstock.errors import Undecodable
from penstock.messaging import envelope
from penstock.store.outbox.queues import QUEUES
from tests.flows.installation import Installation

PAGE = (Path(__file__).parents[1] / "docs/wire-format.md").read_text()

order_placed = Trigger("shop.order_placed", schema={"id": {"type": "integer"}, "amount": {"type": "number"}})


@action(pack="shop")
async def charge(order: int, amount: float) -> str:
    return f"charged {amount:g} for order {order}"


charge_all = Rule(
    "shop.charge_all",
    trigger=order_placed,
    action=charge,
    params={"order": "{{ payload.id }}", "amount": "{{ payload.amount }}"},
)


async def test_the_example_publishes_an_event_once(database: str, vhost: str) -> None:
    [example] = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)
    assert "penstock." not in example.replace('"penstock.events"', "")
    code = example.replace("amqp://guest:guest@localhost/", vhost)
    async with Installation(database, vhost) as house:
        await house.start(order_placed, charge, charge_all)
        for _ in range(2):
            await asyncio.to_thread(exec, code, {})
        [row] = await house.until("select execution_id from enforcement where status = 'executed'")
        assert await house.client.result(row["execution_id"], timeout=20) == "charged 250 for order 7"
        await house.quiet()
        [event] = await house.rows("select source, tenant from event")
        assert (event["source"], event["tenant"]) == ("amqp:webshop", "public")
        [key] = await house.rows("select message_id from event_key")
        assert key["message_id"] == "order-7"


def test_the_envelope_is_as_written() -> None:
    [written] = re.findall(r"^```json\n(.*?)^```", PAGE, re.M | re.S)
    decoded = envelope.decode(written.encode())
    assert orjson.loads(envelope.encode(decoded.type, decoded.ids)) == orjson.loads(written)


def test_every_queue_that_is_used_is_listed() -> None:
    listed = set(re.findall(r"^\| `penstock\.([a-z.]+)`", PAGE, re.M))
    assert listed == set(QUEUES), (
        "the table of envelopes in docs/wire-format.md has a row for each of QUEUES, and no other"
    )


def test_a_field_that_a_newer_version_adds_is_ignored() -> None:
    [written] = re.findall(r"^```json\n(.*?)^```", PAGE, re.M | re.S)
    assert envelope.decode(orjson.dumps({**orjson.loads(written), "more": 1})).ids


@pytest.mark.parametrize("body", [b'{"v": 2, "type": "x", "ids": []}', b"{}", b"\xff", b"[]"])
def test_an_envelope_of_another_version_is_refused(body: bytes) -> None:
    with pytest.raises(Undecodable, match="version 1"):
        envelope.decode(body)
