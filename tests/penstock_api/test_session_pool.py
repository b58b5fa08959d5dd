"""Sessions of an API: none is waited for by a request that has one."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from contextvars import Context

import pytest
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, APIRouter

from penstock.errors import ConnectionFailed
from penstock_api import backend, pages, session_pool
from penstock_api.routes import ROUTERS
from penstock_api.session_pool import SessionPool
from tests.penstock_api.conftest import Api

TWO_SESSIONS = ("/api/v1/limits/shop.door/totals", "/executions", "/executions?find=shop.count")
"""Addresses whose routes read lists, and also the primary."""


@pytest.mark.parametrize("address", TWO_SESSIONS)
async def test_requests_that_read_lists_and_the_primary_end(api: Api, address: str) -> None:
    async with api.caller() as caller:
        answers = await asyncio.gather(*(caller.get(address) for _ in range(6)))
    assert [answer.status_code for answer in answers] == [200] * 6


async def test_requests_that_change_nothing_end(api: Api) -> None:
    """Such a request is noted as unchanged before its session is returned."""
    async with api.caller() as caller:
        body = {"reason": "there is no such letter"}
        calls = (caller.post("/api/v1/bulk/dead-letters/drop", json=body) for _ in range(6))
        answers = await asyncio.gather(*calls)
    assert [answer.status_code for answer in answers] == [200] * 6


async def test_requests_that_are_refused_after_a_look_end(api: Api) -> None:
    """Such a refusal is audited before the session of the request is returned."""
    names = [f"refused-{number}" for number in range(6)]
    for name in names:
        await api.token(name, "define", tenants=("theirs",))
    async with AsyncExitStack() as stack:
        callers = [await stack.enter_async_context(api.caller(name)) for name in names]
        body = {"value": "s3cret", "tenant": "public"}
        answers = await asyncio.gather(*(caller.put("/api/v1/secrets/mine", json=body) for caller in callers))
    assert {answer.status_code for answer in answers} == {403}


async def test_a_session_is_lent_to_one_request_at_a_time(api: Api) -> None:
    pool = SessionPool(api.house.client.database)

    async def borrow() -> int:
        async with pool.session() as session, pool.session() as same:
            assert session is same
            [row] = await same.fetch("select 1 as one")
            return int(row["one"])

    async with pool.session():
        waiting = asyncio.create_task(borrow(), context=Context())
        await asyncio.sleep(0)
        assert not waiting.done()
    assert await waiting == 1


async def test_a_request_is_refused_if_no_session_becomes_free(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_pool, "PATIENCE", 0.05)
    pool = SessionPool(api.house.client.database)

    async def borrow() -> None:
        async with pool.session() as session:
            await session.fetch("select 1")

    async with pool.session():
        with pytest.raises(ConnectionFailed, match="too many requests"):
            await asyncio.create_task(borrow(), context=Context())
    await asyncio.create_task(borrow())  # its context has a loan that has ended


def needs(dependant: Dependant) -> list[object]:
    """Return what a route depends on, in the order in which FastAPI asks for it."""
    found: list[object] = []
    for part in dependant.dependencies:
        found += [*needs(part), part.call]
    return found


def test_each_route_asks_for_lists_before_the_primary() -> None:
    """With a standby these are two pools. Two orders would let two requests wait for each other."""
    routers: list[APIRouter] = [*ROUTERS, *pages.ROUTERS]
    routes = [route for router in routers for route in router.routes if isinstance(route, APIRoute)]
    both = 0
    for route in routes:
        asked = needs(route.dependant)
        if backend._reading in asked and backend._session in asked:
            both += 1
            assert asked.index(backend._reading) < asked.index(backend._session), route.path
    assert len(routes) > 150
    assert both >= 2
