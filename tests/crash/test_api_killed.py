"""kill -9 of the API while it is called: what it had answered stands, what is asked again with its key is there once, and
executors and workers notice nothing."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest

from tests.crash.processes import Fleet
from tests.flows import shop
from tests.flows.installation import AS_USED, Installation
from tests.servers.process import free_port

CALLERS, EACH, KILLS = 8, 40, 4
PATIENCE = 60.0


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "services.log"


async def test_an_api_that_is_killed_takes_nothing_along(
    house: Installation, database: str, broker: str | None, log: Path
) -> None:
    await house.apply(*shop.ALL, shop.sturdy)
    port = free_port()
    answered: dict[str, UUID] = {}
    options: dict[str, Any] = {"api_port": port, "api_access": "open", **AS_USED}
    with Fleet(database, broker, log, **options) as fleet:
        services = [fleet.executor(), fleet.worker(), fleet.worker()]
        api = fleet.start("api")
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=5) as http:
            streams = [asyncio.create_task(watch(http)) for _ in range(3)]
            calls = [asyncio.create_task(call(http, caller, answered)) for caller in range(CALLERS)]
            for kill in range(KILLS):
                await reached(answered, (kill + 1) * CALLERS * EACH // (KILLS + 2), calls)
                fleet.kill(api)
                own = await house.client.start("shop.sturdy", {"n": -kill})  # without it, all goes on
                await house.client.result(own, timeout=PATIENCE)
                api = fleet.start("api")
            await asyncio.gather(*calls)
            for stream in streams:
                stream.cancel()
        await house.until(
            "select 1 where not exists (select from execution where finished_at is null)", seconds=PATIENCE
        )
        assert [process.poll() for process in services] == [None] * 3, log.read_text()[-3000:]
    assert fleet.killed == KILLS
    assert await house.statuses() == {"completed": CALLERS * EACH + KILLS}
    rows = await house.rows("select key, execution_id from idempotency where key is not null")
    assert {row["key"]: row["execution_id"] for row in rows} == answered
    assert (
        await house.rows(
            "select from history where new = 'running' having count(*) <> $1", CALLERS * EACH + KILLS
        )
        == []
    )
    await house.sound()


async def call(http: httpx.AsyncClient, caller: int, answered: dict[str, UUID]) -> None:
    """Start one after the other; ask again, with the same key, until there is an answer."""
    for number in range(EACH):
        key = f"{caller}-{number}"
        body = {"action": "shop.sturdy", "parameters": {"n": caller * EACH + number}}
        async with asyncio.timeout(PATIENCE):
            while key not in answered:
                try:
                    answer = await http.post(
                        "/api/v1/executions", json=body, headers={"idempotency-key": key}
                    )
                except httpx.TransportError:
                    await asyncio.sleep(0.1)
                    continue
                assert answer.status_code in (200, 201), answer.text
                answered[key] = UUID(answer.json()["id"])


async def watch(http: httpx.AsyncClient) -> None:
    """Watch as an open page does: it listens again whenever the API is gone."""
    while True:
        with contextlib.suppress(httpx.TransportError):
            async with http.stream("GET", "/api/v1/stream", timeout=None) as stream:
                async for _ in stream.aiter_lines():
                    pass
        await asyncio.sleep(0.1)


async def reached(answered: dict[str, UUID], count: int, calls: list[asyncio.Task[None]]) -> None:
    async with asyncio.timeout(PATIENCE):
        while len(answered) < count:
            for failed in (call for call in calls if call.done()):
                failed.result()
            await asyncio.sleep(0.02)
