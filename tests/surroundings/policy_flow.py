"""Work that piles up while no worker lives, and events that arrive while no executor lives, under one policy of the broker."""

from __future__ import annotations

import asyncio
from urllib.parse import quote, unquote, urlsplit

import pika

from penstock.operate import doctor
from tests.flows import shop
from tests.flows.installation import Installation
from tests.penstock.messaging.transports.broker import plain_pika
from tests.servers import management
from tests.servers.rabbitmq import RabbitMQ
from tests.surroundings.broker_policies import POLICIES

EVENTS = 6


def api_of(server: RabbitMQ) -> management.Api:
    of = urlsplit(server.url())
    return management.Api(
        of.hostname or "", server.api_port, unquote(of.username or ""), unquote(of.password or "")
    )


def put_policy(server: RabbitMQ, vhost: str, name: str) -> None:
    pattern, definition = POLICIES[name]
    body = {"pattern": pattern, "definition": dict(definition), "apply-to": "queues", "priority": 1}
    where = quote(unquote(urlsplit(vhost).path[1:]), safe="")
    api_of(server).call("PUT", f"policies/{where}/{quote(name)}", body)


async def play(database: str, vhost: str, server: RabbitMQ, name: str) -> None:
    """Start more work than the policy lets wait, then workers, and see all of it completed."""
    definition = POLICIES[name][1]
    ends = "message-ttl" in definition or definition.get("overflow") == "drop-head"
    async with Installation(database, vhost, delivery_limit=20, restage_age=2.0) as house:
        await house.apply(*shop.ALL)
        first = await house.executor()
        await asyncio.to_thread(put_policy, server, vhost, name)
        worker = await house.worker(shop.wait_for)  # the route is served, and what comes has no room
        ids = await house.client.start_many("shop.charge", [{"order": n} for n in range(8)])
        ids += [await house.client.start("shop.charge", {"order": 8 + n}) for n in range(4)]
        await house.ended(first)
        accepted = await asyncio.to_thread(publish_events, vhost)
        assert accepted == EVENTS or definition.get("overflow") == "reject-publish"
        await house.executor()
        await house.ended(worker)
        await house.worker(*shop.ALL)
        results = [await house.client.result(id, timeout=90) for id in ids]
        assert sorted(result["order"] for result in results) == list(range(12))
        await house.until("select 1 from event having count(*) = $1", accepted, seconds=60)
        await house.until("select 1 from enforcement having count(*) = $1", accepted, seconds=60)
        await house.quiet(60)
        await house.sound()
        assert not await house.rows("select from execution where status <> 'completed'")
        findings = await doctor.examine(house.settings())
        named_policies = [one for one in findings if one.what.startswith("policy on ")]
        letters = await house.rows("select from dead_letter where reason ^@ 'expired' or reason ^@ 'maxlen'")
        assert bool(named_policies) is bool(letters)
        assert ends or not named_policies


def publish_events(vhost: str) -> int:
    """Publish events and return how many the broker has accepted. A full queue refuses the rest, and a producer is told so."""
    with plain_pika(vhost) as channel:
        for n in range(EVENTS):
            properties = pika.BasicProperties(message_id=f"order-{n}", app_id="shop", delivery_mode=2)
            while True:
                try:
                    channel.basic_publish(
                        "penstock.events", "shop.order_placed", b'{"id": %d, "amount": 500}' % n, properties
                    )
                    break
                except pika.exceptions.NackError:
                    return n
    return EVENTS
