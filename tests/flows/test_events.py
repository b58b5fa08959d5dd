"""From an event to a result."""

from __future__ import annotations

import asyncio
import json

import asyncpg
import pika
import pytest

from penstock.errors import Conflict, InvalidInput, NotFound
from penstock.messaging.transports import Message
from penstock.store.session.staged_messages import StagedMessage
from tests.flows import shop
from tests.flows.installation import Installation


async def test_an_event_that_meets_a_rule_becomes_a_result(house: Installation) -> None:
    await house.start(*shop.ALL)
    event = await house.client.publish("shop.order_placed", {"id": 7, "amount": 250})
    [row] = await house.until(
        "select r.result::text as result from enforcement n join result r using (execution_id) where event_id = $1",
        event,
    )
    assert json.loads(row["result"]) == {"order": 7, "charged": 250}
    await house.quiet()
    await house.sound()


async def test_an_event_that_meets_no_rule_starts_nothing(house: Installation) -> None:
    await house.start(*shop.ALL)
    small = await house.client.publish("shop.order_placed", {"id": 1, "amount": 5})
    big = await house.client.publish("shop.order_placed", {"id": 2, "amount": 500})
    await house.until("select 1 from enforcement where event_id = $1", big)
    await house.quiet()
    assert not await house.rows("select 1 from enforcement where event_id = $1", small)


async def test_a_condition_or_template_that_fails_is_kept_with_its_reason(house: Installation) -> None:
    await house.start(*shop.ALL)
    event = await house.client.publish("shop.order_placed", {"id": 13, "amount": 1})
    [row] = await house.until("select status, error from enforcement where event_id = $1", event)
    assert row["status"] == "failed"
    assert "nothing" in row["error"]


@pytest.mark.parametrize(("first", "second"), [(1e16, 10**16), (0.0, -0.0)])
async def test_key_of_an_event_with_a_payload_stored_alike(
    house: Installation, first: float, second: float
) -> None:
    await house.start(*shop.ALL)
    id = await house.client.publish("shop.order_placed", {"id": 7, "amount": first}, key="k")
    assert await house.client.publish("shop.order_placed", {"id": 7, "amount": second}, key="k") == id


async def test_the_same_key_is_the_same_event(house: Installation) -> None:
    await house.start(*shop.ALL)
    ids = await asyncio.gather(
        *(
            house.client.publish("shop.order_placed", {"id": 7, "amount": 250}, key="order-7")
            for _ in range(10)
        )
    )
    assert len(set(ids)) == 1
    with pytest.raises(Conflict):
        await house.client.publish("shop.order_placed", {"id": 8}, key="order-7")
    await house.until("select 1 from enforcement")
    await house.quiet()
    assert await house.statuses() == {"completed": 1}


async def test_bad_events_are_refused_at_the_door(house: Installation) -> None:
    await house.apply(*shop.ALL)
    with pytest.raises(NotFound, match=r"shop\.nothing"):
        await house.client.publish("shop.nothing", {})
    with pytest.raises(InvalidInput, match="id"):
        await house.client.publish("shop.order_placed", {"id": "seven"})


async def test_a_disabled_rule_matches_nothing(house: Installation) -> None:
    await house.start(*shop.ALL)
    await house.rows("update catalog set enabled = false where ref = 'shop.big_orders' returning 1")
    await house.client.publish("shop.order_placed", {"id": 7, "amount": 250})
    await house.until("select 1 where not exists (select from outbox) and exists (select from event)")
    await house.quiet()
    assert not await house.rows("select 1 from enforcement")


async def test_events_delivered_again_and_again_start_each_execution_once(house: Installation) -> None:
    await house.apply(*shop.ALL)
    events = [
        await house.client.publish("shop.order_placed", {"id": n, "amount": 500}) for n in range(100, 130)
    ]
    await house.client.flush()
    parts = await house.parts()
    for _ in range(2):  # every message twice more, in the other order
        rows = await house.rows(
            "insert into outbox (queue, ids) select 'event.created', array_agg(x order by x desc) "
            "from unnest($1::uuid[]) x returning id as outbox_id, queue, ids",
            events,
        )
        parts.publisher.publish([StagedMessage(*row) for row in rows])
        await parts.publisher.flush()
    await house.executor()
    await house.executor()
    await house.worker(*shop.ALL)
    await house.until("select 1 from enforcement having count(*) = 30")
    await house.quiet()
    assert await house.statuses() == {"completed": 30}
    await house.sound()


@pytest.mark.parametrize("transport", ["rabbitmq"], indirect=True)
async def test_any_amqp_client_can_publish_an_event(house: Installation, broker: str) -> None:
    await house.start(*shop.ALL)

    def publish() -> None:
        connection = pika.BlockingConnection(pika.URLParameters(broker))
        channel = connection.channel()
        channel.confirm_delivery()
        for body, key, id in [
            (b'{"id": 1, "amount": 5e16}', "shop.order_placed", "m-1"),
            (b'{"amount": 50000000000000000, "id": 1}', "shop.order_placed", "m-1"),
            (b"{not json", "shop.order_placed", "m-2"),
            (b'{"id": "seven"}', "shop.order_placed", "m-3"),
            (b"{}", "shop.unknown", "m-4"),
            (b'{"id": 99}', "shop.order_placed", "m-1"),
            (b'{"id": 2, "amount": 500, "note": "\\u0000"}', "shop.order_placed", "m-5"),
            (b'{"id": 3, "amount": 500}', "shop.order_placed", None),
            (b"{}", "penstock.execution.failed", "m-6"),
        ]:
            channel.basic_publish(
                "penstock.events", key, body, pika.BasicProperties(message_id=id), mandatory=True
            )
        connection.close()

    await asyncio.to_thread(publish)
    await house.until("select 1 from enforcement having count(*) = 2")
    letters = await house.until("select reason from dead_letter where (select count(*) from dead_letter) = 6")
    reasons = " | ".join(sorted(row["reason"] for row in letters))
    for reason in ("not JSON", "shop.unknown", "another payload", "NUL", "id", "failed is not published"):
        assert reason in reasons
    await house.quiet()
    assert await house.statuses() == {"completed": 2}


async def test_an_undecodable_message_stops_nothing_but_is_kept(house: Installation, database: str) -> None:
    await house.start(*shop.ALL)
    await house.put(
        Message("execution.requested", b"\xff\xfe garbage", id="g-1", type="?"),
        Message("execution.requested", b'{"v": 9, "type": "x", "ids": []}', id="g-2", type="?"),
    )
    assert await house.client.run("shop.charge", {"order": 1}, timeout=20) == {"order": 1, "charged": 0}
    letters = await house.until(
        "select queue, reason from dead_letter where (select count(*) from dead_letter) = 2"
    )
    assert {row["queue"] for row in letters} == {"execution.requested"}
    connection = await asyncpg.connect(database)
    assert await connection.fetchval("select count(*) from execution where finished_at is null") == 0
    await connection.close()
