"""Sessions of an API: none is waited for by a request that has one."""

from __future__ import annotations

import asyncio

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


async def test_a_request_is_refused_if_no_session_becomes_free(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_pool, "PATIENCE", 0.05)
    pool = SessionPool(api.house.client.database)
    async with pool.session():
        with pytest.raises(ConnectionFailed, match="too many requests"):
            async with pool.session():
                pass
    async with pool.session() as session:
        assert await session.fetch("select 1 as one")


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
