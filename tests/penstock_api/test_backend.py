"""An API that reads its lists from a standby."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import httpx
import pytest
from pydantic import SecretStr

from penstock.operate.doctor import standby as doctor
from penstock.settings import Settings
from penstock.store.schema import migrate
from penstock.store.session import standby
from penstock_api.app import make_app
from penstock_api.backend import BEHIND, Backend
from tests.flows import shop
from tests.flows.installation import Installation
from tests.servers.replicated import ReplicatedPostgres

SOON = 0.3
"""Seconds."""


@pytest.fixture
async def caller(
    pair: ReplicatedPostgres, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[httpx.AsyncClient]:
    for name in ("LOOK", "AGAIN"):
        monkeypatch.setattr(standby, name, SOON)
    monkeypatch.setattr(standby, "PATIENCE", 1.0)
    await migrate.upgrade(Settings(database_url=SecretStr(pair.dsn())))
    read = SecretStr(pair.standby_dsn())
    async with Installation(pair.dsn(), None, database_read_url=read, api_access="open") as house:
        await house.start(*shop.STURDY)
        backend = Backend.of(house.client)
        transport = httpx.ASGITransport(make_app(backend), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=30) as made:
            yield made
        await backend.close()


async def started(caller: httpx.AsyncClient) -> str:
    answer = await caller.post("/api/v1/executions", json={"action": "shop.sturdy", "parameters": {"n": 1}})
    assert answer.status_code < 300, answer.text
    return str(answer.json()["id"])


async def listed(caller: httpx.AsyncClient) -> tuple[set[str], bool]:
    """The executions of the list, and whether it was read from the standby."""
    answer = await caller.get("/api/v1/executions")
    assert answer.status_code == 200, answer.text
    return {one["id"] for one in answer.json()["items"]}, BEHIND in answer.headers


async def until_listed(caller: httpx.AsyncClient, id: str, *, of_standby: bool) -> None:
    async with asyncio.timeout(30):
        while await listed(caller) != ({id}, of_standby):
            await asyncio.sleep(0.05)


async def nothing_of_the_standby(caller: httpx.AsyncClient) -> None:
    """Wait until the primary answers instead of the late standby."""
    async with asyncio.timeout(30):
        while await listed(caller) != (set(), True):
            await asyncio.sleep(0.05)


async def on_standby(pair: ReplicatedPostgres, statement: str) -> Any:
    connection = await asyncpg.connect(pair.standby_dsn())
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()


async def test_lists_come_from_the_standby_and_objects_from_the_primary(
    pair: ReplicatedPostgres, caller: httpx.AsyncClient
) -> None:
    await nothing_of_the_standby(caller)
    await on_standby(pair, "select pg_wal_replay_pause()")
    id = await started(caller)
    await nothing_of_the_standby(caller)
    answer = await caller.get(f"/api/v1/executions/{id}")
    assert answer.status_code == 200
    assert BEHIND not in answer.headers
    await on_standby(pair, "select pg_wal_replay_resume()")
    await until_listed(caller, id, of_standby=True)


async def test_pages_say_how_old_they_are(caller: httpx.AsyncClient) -> None:
    for path in ("/", "/executions", "/events", "/dead-letters"):
        answer = await caller.get(path, headers={"accept": "text/html"})
        assert answer.status_code == 200, path
        assert "The lists on this page come from a standby database, and may be" in answer.text, path


async def test_lists_are_the_primarys_while_the_standby_is_gone(
    pair: ReplicatedPostgres, caller: httpx.AsyncClient
) -> None:
    await nothing_of_the_standby(caller)
    await asyncio.to_thread(pair.kill_standby)
    await asyncio.to_thread(pair.take_out_standby)
    id = await started(caller)
    await until_listed(caller, id, of_standby=False)
    await asyncio.to_thread(pair.start_standby)
    await until_listed(caller, id, of_standby=True)


async def test_lists_are_the_primarys_while_the_standby_hangs(
    pair: ReplicatedPostgres, caller: httpx.AsyncClient
) -> None:
    await nothing_of_the_standby(caller)
    pair.freeze_standby()
    await asyncio.to_thread(pair.take_out_standby)
    id = await started(caller)
    await until_listed(caller, id, of_standby=False)
    pair.thaw_standby()
    await until_listed(caller, id, of_standby=True)


async def test_a_standby_that_is_far_behind_is_not_read(
    pair: ReplicatedPostgres, caller: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standby, "FAR", 1.0)
    await on_standby(pair, "select pg_wal_replay_pause()")
    id = await started(caller)
    await until_listed(caller, id, of_standby=False)


async def test_doctor_says_how_the_standby_is(pair: ReplicatedPostgres) -> None:
    settings = Settings(database_url=SecretStr(pair.dsn()))
    assert await doctor.findings(settings) == []
    settings = settings.model_copy(update={"database_read_url": SecretStr(pair.standby_dsn())})
    await migrate.upgrade(settings)
    async with asyncio.timeout(60):  # it may have replayed nothing yet
        while [(one.what, one.state) for one in await doctor.findings(settings)] != [("standby", "ok")]:
            await asyncio.sleep(0.2)
    await asyncio.to_thread(pair.kill_standby)
    [found] = await doctor.findings(settings)
    assert (found.what, found.state) == ("standby", "warning")
    assert "does not answer" in found.says
    assert "PENSTOCK_DATABASE_READ_URL" in str(found.fix)


async def test_a_query_that_a_standby_cannot_run_runs_on_the_primary(pair: ReplicatedPostgres) -> None:
    settings = Settings(
        database_url=SecretStr(pair.dsn()), database_read_url=SecretStr(pair.standby_dsn()), name="reader"
    )
    await migrate.upgrade(settings)
    async with Installation(pair.dsn(), None) as house:
        near = standby.Standby(settings, role="test")
        session = standby.StandbySession(near, house.session)
        await house.rows("create unlogged table not_there as select 1 as one")
        try:
            known = "select pg_is_in_recovery() and to_regclass('not_there') is not null"
            async with asyncio.timeout(60):  # it may not have replayed the table yet
                while not (await session.fetch(known))[0][0]:
                    await asyncio.sleep(0.5)
            assert (await session.fetch("select one from not_there"))[0][0] == 1
            await session.fetch("insert into not_there values (2)")
            assert (await session.fetch("select pg_is_in_recovery()"))[0][0]
        finally:
            await near.close()
