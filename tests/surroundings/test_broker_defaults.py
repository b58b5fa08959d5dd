"""Defaults of a virtual host and of a server that an administrator sets for all of its queues and consumers."""

from __future__ import annotations

import asyncio
from urllib.parse import quote, unquote, urlsplit

import asyncpg
import pytest
from structlog.testing import capture_logs

from tests.flows import shop
from tests.flows.installation import Installation
from tests.servers import brokers
from tests.servers.rabbitmq import NativeRabbitMQ, RabbitMQ
from tests.surroundings.policy_flow import api_of, publish_events

HELD_S = 4.0
"""Seconds for which messages stay unacknowledged, several times the broker's patience."""


@pytest.mark.parametrize("kind", ["quorum", "stream"])
async def test_queue_type_default_of_a_vhost_changes_nothing(
    database: str, vhost: str, rabbitmq_server: RabbitMQ, kind: str
) -> None:
    """Each queue names its type: a stream would keep its messages, and a quorum queue is not exclusive."""
    api, name = api_of(rabbitmq_server), quote(unquote(urlsplit(vhost).path[1:]), safe="")
    api.call("DELETE", f"vhosts/{name}")
    api.call("PUT", f"vhosts/{name}", {"default_queue_type": kind, "defaultqueuetype": kind})
    rabbitmq_server.add_vhost(unquote(name))
    brokers.give_users(rabbitmq_server, vhost)
    assert (api.call("GET", f"vhosts/{name}") or {}).get("default_queue_type") == kind
    async with Installation(database, vhost) as house:
        await house.start(*shop.ALL)
        ids = await house.client.start_many("shop.charge", [{"order": n} for n in range(8)])
        assert len([await house.client.result(id, timeout=60) for id in ids]) == 8
        accepted = await asyncio.to_thread(publish_events, vhost)
        await house.until("select 1 from enforcement having count(*) = $1", accepted, seconds=60)
        await house.quiet(60)
        await house.sound()


async def test_consumer_timeout_repeats_no_work(database: str) -> None:
    """The broker closes the channels of consumers that acknowledge late. Handlers wait for a lock meanwhile."""
    server = NativeRabbitMQ(advanced="{consumer_timeout, 1000}, {channel_tick_interval, 250}")
    try:
        vhost = server.add_vhost("hasty")
        brokers.give_users(server, vhost)
        with capture_logs() as lines:
            await _play_held(database, vhost)
        assert [
            line for line in lines if "timed out" in str(line.get("reason"))
        ]  # the broker's patience did end
    finally:
        server.close()


async def _play_held(database: str, vhost: str) -> None:
    async with Installation(database, vhost) as house:
        await house.start(*shop.ALL)
        operator = await asyncpg.connect(database)
        async with operator.transaction():
            await operator.execute("lock table event, execution in exclusive mode")
            publishing = asyncio.create_task(asyncio.to_thread(publish_events, vhost))
            started = asyncio.create_task(
                house.client.start_many("shop.charge", [{"order": n} for n in range(8)])
            )
            await asyncio.sleep(HELD_S)
        await operator.close()
        accepted = await publishing
        results = [await house.client.result(id, timeout=60) for id in await started]
        assert sorted(result["order"] for result in results) == list(range(8))
        await house.until("select 1 from event having count(*) = $1", accepted, seconds=60)
        await house.until("select 1 from enforcement having count(*) = $1", accepted, seconds=60)
        await house.quiet(60)
        await house.sound()
        assert not await house.rows("select from execution where attempt > 1")
