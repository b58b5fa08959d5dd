"""The answers of a service on its port."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
from pydantic import SecretStr

from penstock import Limit
from penstock.errors import PartEnded
from penstock.language.loading import Definitions
from penstock.messaging.transports import Message
from penstock.service.assembly import Stop
from penstock.service.health import serve_health
from penstock.service.readiness import database_answers
from penstock.settings import Settings
from penstock.store.outbox import queues
from penstock.store.schema import migrate
from penstock_executor import main as executor
from penstock_worker import main as worker
from tests.flows import shop
from tests.flows.installation import Installation
from tests.flows.reading import get, metrics
from tests.kit.hostile_proxy import Cut, HostileProxy
from tests.servers.postgres import Postgres
from tests.servers.process import free_port


async def test_a_service_is_live_ready_and_has_metrics(house: Installation) -> None:
    parts = await house.parts()
    parts.metrics.show(gauges={"running": lambda: 3}, counters={"claims_lost": lambda: 2})
    health = await serve_health(parts)
    assert await get(health.port, "/live") == (200, "live\n")
    assert await get(health.port, "/ready") == (200, "ready\n")
    status, text = await get(health.port, "/metrics")
    assert status == 200
    assert "penstock_running 3.0\n" in text
    assert "penstock_claims_lost_total 2.0\n" in text
    assert (await get(health.port, "/nothing"))[0] == 404
    await health.close()


async def test_services_count_and_time_their_work(house: Installation) -> None:
    executor, worker = free_port(), free_port()
    await house.apply(
        shop.count, shop.hopeless, Limit(99, ref="shop.most", scope="shop")
    )  # executors let them in, where they are many
    await house.executor(port=executor, sweep_interval=0.05)
    await house.worker(shop.count, shop.hopeless, port=worker)
    for id in await house.client.start_many("shop.count", [{"words": "a b"}] * 101):
        await house.client.result(id)
    failing = await house.client.start("shop.hopeless", {})
    await house.until("select 1 from execution where id = $1 and status = 'failed'", failing)
    await house.until("select 1 where not exists (select from outbox)")

    figures = await metrics(executor)
    items = figures['penstock_batch_items_sum{queue="execution.requested"}']
    assert items >= 101, "a relay may have sent one again"
    assert 1 <= figures['penstock_batch_seconds_count{queue="execution.requested"}'] <= items
    assert figures['penstock_batch_seconds_sum{queue="execution.requested"}'] > 0
    async with asyncio.timeout(20):
        while not (await metrics(executor))['penstock_loop_seconds_count{loop="reap_workers"}']:
            await asyncio.sleep(0.05)
    figures = await metrics(worker)
    assert figures['penstock_start_seconds_count{route="default"}'] == 102
    assert figures['penstock_start_seconds_sum{route="default"}'] > 0
    assert figures['penstock_run_seconds_count{action="shop.count"}'] == 101
    assert figures['penstock_attempts_total{action="shop.count",status="completed"}'] == 101
    assert figures['penstock_attempts_total{action="shop.hopeless",status="failed"}'] == 1


async def test_a_garbled_request_hurts_no_other_request(house: Installation) -> None:
    parts = await house.parts()
    health = await serve_health(parts)
    for garbage in (b"\0\xff\r\n\r\n", b"GET\r\n\r\n", b"x" * 100_000):
        reader, writer = await asyncio.open_connection("127.0.0.1", health.port)
        writer.write(garbage)
        writer.write_eof()
        await reader.read()
        writer.close()
    assert await get(health.port, "/live") == (200, "live\n")
    await health.close()


async def test_ready_fails_while_nothing_is_consumed(database: str, vhost: str) -> None:
    port = urlsplit(vhost).port
    assert port is not None
    with HostileProxy(port) as proxy:
        async with Installation(database, proxy.address(vhost)) as house:
            parts = await house.parts()
            health = await serve_health(parts)
            assert (await get(health.port, "/ready"))[0] == 200
            proxy.cut(Cut("close"))
            async with asyncio.timeout(20):
                while (await get(health.port, "/ready"))[0] == 200:
                    await asyncio.sleep(0.1)
            assert (await get(health.port, "/live"))[0] == 200
            proxy.heal()
            async with asyncio.timeout(60):
                while (await get(health.port, "/ready"))[0] != 200:
                    await asyncio.sleep(0.1)
            await health.close()


async def test_api_is_ready_while_postgresql_answers(
    private_postgres: Callable[[], Postgres], vhost: str
) -> None:
    server = await asyncio.to_thread(private_postgres)
    await migrate.upgrade(Settings(database_url=SecretStr(server.dsn())))
    port = urlsplit(vhost).port
    assert port is not None
    with HostileProxy(port) as proxy:
        async with Installation(server.dsn(), proxy.address(vhost)) as house:
            parts = await house.parts("api")
            health = await serve_health(parts, database_answers(parts))
            assert await get(health.port, "/ready") == (200, "ready\n")
            proxy.cut(Cut("close"))
            async with asyncio.timeout(20):
                while parts.transport.healthy:
                    await asyncio.sleep(0.1)
            assert await get(health.port, "/ready") == (200, "ready\n")
            assert "penstock_ready 1.0\n" in (await get(health.port, "/metrics"))[1]
            await asyncio.to_thread(server.kill)
            assert await get(health.port, "/ready") == (503, "PostgreSQL does not answer\n")
            assert "penstock_ready 0.0\n" in (await get(health.port, "/metrics"))[1]
            await health.close()
            await asyncio.to_thread(server.start)
            proxy.heal()


async def test_api_begins_without_its_broker(private_postgres: Callable[[], Postgres], vhost: str) -> None:
    server = await asyncio.to_thread(private_postgres)
    await migrate.upgrade(Settings(database_url=SecretStr(server.dsn())))
    port = urlsplit(vhost).port
    assert port is not None
    with HostileProxy(port) as proxy:
        for cut in (Cut("close"), Cut("hang")):
            async with asyncio.timeout(60), Installation(server.dsn(), proxy.address(vhost)) as house:
                proxy.cut(cut)
                parts = await house.parts("api")
                health = await serve_health(parts, database_answers(parts))
                assert await get(health.port, "/ready") == (200, "ready\n")
                message = Message(queues.EVENT_RECEIVED, b"{}", "1", "event")
                assert await parts.transport.publish([message]) == [False]
                proxy.heal()
                while await parts.transport.publish([message]) != [True]:
                    await asyncio.sleep(0.1)
                await health.close()


async def test_a_service_ends_with_its_reason_when_a_part_of_it_does(house: Installation) -> None:
    """And says until then that it does not live."""
    for role in ("executor", "worker"):
        parts, stop = await house.parts(role), Stop()
        serving = asyncio.create_task(
            executor.work(parts, stop)
            if role == "executor"
            else worker.work(parts, Definitions([shop.count]), stop)
        )
        await asyncio.wait_for(stop.began.wait(), 20)
        health = await serve_health(parts)
        assert (await get(health.port, "/live"))[0] == 200
        name = "loop relay_outbox" if role == "executor" else "reports"
        next(task for task in asyncio.all_tasks() if task.get_name() == name).cancel()
        with pytest.raises(PartEnded, match=f"{name} has ended: it was cancelled"):
            await asyncio.wait_for(serving, 20)
        assert (await get(health.port, "/live")) == (503, f"{name} has ended: it was cancelled\n")
        await health.close()
