"""What a service says of itself on its port."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import httpx

from penstock.observe import Observed, serve_health
from tests.flows.installation import Installation
from tests.servers.rabbitmq import RabbitMQ


async def get(port: int, path: str) -> tuple[int, str]:
    async with httpx.AsyncClient() as client:
        answer = await client.get(f"http://127.0.0.1:{port}{path}")
        return answer.status_code, answer.text


async def test_a_service_is_live_ready_and_has_metrics(house: Installation) -> None:
    parts = await house.parts()
    health = await serve_health(
        house.settings(), Observed("test", parts.transport, gauges={"running": lambda: 3})
    )
    assert await get(health.port, "/live") == (200, "live\n")
    assert await get(health.port, "/ready") == (200, "ready\n")
    status, text = await get(health.port, "/metrics")
    assert status == 200
    assert 'penstock_running{service="test"} 3.0' in text
    assert (await get(health.port, "/nothing"))[0] == 404
    await health.close()


async def test_a_garbled_request_hurts_nobody(house: Installation) -> None:
    parts = await house.parts()
    health = await serve_health(house.settings(), Observed("test", parts.transport))
    for garbage in (b"\0\xff\r\n\r\n", b"GET\r\n\r\n", b"x" * 100_000):
        reader, writer = await asyncio.open_connection("127.0.0.1", health.port)
        writer.write(garbage)
        writer.write_eof()
        await reader.read()
        writer.close()
    assert await get(health.port, "/live") == (200, "live\n")
    await health.close()


async def test_ready_fails_while_nothing_is_consumed(
    database: str, private_rabbitmq: Callable[[], RabbitMQ]
) -> None:
    server = await asyncio.to_thread(private_rabbitmq)
    async with Installation(database, server.add_vhost("health")) as house:
        parts = await house.parts()
        health = await serve_health(house.settings(), Observed("test", parts.transport))
        assert (await get(health.port, "/ready"))[0] == 200
        await asyncio.to_thread(server.kill)
        async with asyncio.timeout(20):
            while (await get(health.port, "/ready"))[0] == 200:
                await asyncio.sleep(0.1)
        assert (await get(health.port, "/live"))[0] == 200
        await asyncio.to_thread(server.start)
        async with asyncio.timeout(60):
            while (await get(health.port, "/ready"))[0] != 200:
                await asyncio.sleep(0.1)
        await health.close()
