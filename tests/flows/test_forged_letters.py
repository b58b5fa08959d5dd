"""Forged letters: a client that may only write to the exchange of events fails no execution of another."""

from __future__ import annotations

import pika
import pytest

from penstock.messaging import envelope
from penstock.messaging.transports import Message
from penstock.store.outbox import queues
from tests.flows import shop
from tests.flows.installation import Installation
from tests.penstock.messaging.transports.broker import plain_pika

QUEUE = "penstock.work.default"


@pytest.mark.parametrize("key", ["shop.order_placed", "died.work.default", "dead"])
async def test_an_event_that_expires_fails_no_execution_whatever_it_says(
    database: str, vhost: str, key: str
) -> None:
    """Its producer may write to the exchange of events, and nowhere else."""
    async with Installation(database, vhost, restage_age=60, relay_age=60) as house:
        await house.apply(*shop.ALL)
        parts = await house.parts()
        for queue in ("execution.requested", "work.default"):
            await parts.transport.declare(queue)
        executor = await house.executor()
        id = await house.client.start("shop.charge", {"order": 7})
        await house.until("select 1 from execution where id = $1 and status = 'scheduled'", id)
        await house.ended(executor)  # so that events wait, and expire
        with plain_pika(vhost) as channel:
            channel.basic_publish(
                "penstock.events",
                key,
                envelope.encode("work", [id]),
                pika.BasicProperties(
                    expiration="1",
                    type="work",
                    headers={
                        "x-penstock-queue": "work.default",
                        "x-penstock-reason": "rejected",
                        "x-death": [
                            {"queue": QUEUE, "reason": "rejected", "count": 1, "routing-keys": ["a"]}
                        ],
                    },
                ),
            )
        await house.executor()
        [letter] = await house.until("select * from dead_letter where reason = 'expired'")
        assert (letter["queue"], (await house.client.get(id)).status) == ("event.received", "scheduled")
        await house.worker(*shop.ALL)
        assert await house.client.result(id, timeout=20) == {"order": 7, "charged": 0}
        await house.sound()


async def test_a_letter_of_another_route_fails_nothing(house: Installation) -> None:
    await house.apply(*shop.ALL)
    await house.executor()
    id = await house.client.start("shop.charge", {"order": 7})
    await house.until("select 1 from execution where id = $1 and status = 'scheduled'", id)
    headers = {"x-penstock-reason": "rejected", "x-penstock-queue": "work.elsewhere"}
    body = envelope.encode("work", [id])
    await house.put(Message(queues.DEAD, body, id="odd", type="work", headers=headers))
    [letter] = await house.until("select * from dead_letter where reason = 'rejected'")
    assert letter["queue"] == "work.elsewhere"
    assert (await house.client.get(id)).status == "scheduled"
    await house.sound()
