"""Sessions of an API: none is waited for by a request that has one."""

from __future__ import annotations

import asyncio
from uuid import UUID

import asyncpg
import pytest
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, APIRouter

from penstock.client import dead_letters
from penstock.errors import ConnectionFailed
from penstock.store.outbox.dead_letters import DeadLetter, LetterFilter
from penstock.store.session import audited_change
from penstock.store.session.database import Session
from penstock.store.session.standby import Standby, StandbySession
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
    """Their audit row is written while the request still has the session of its route."""
    body = {"reason": "of no letter"}
    async with api.caller() as caller:
        answers = await asyncio.gather(
            *(caller.post("/api/v1/bulk/dead-letters/drop", json=body) for _ in range(6))
        )
        rows = (await caller.get("/api/v1/audit?operation=bulk_drop&limit=6")).json()["items"]
    assert [answer.status_code for answer in answers] == [200] * 6
    assert [(row["outcome"], row["reason"]) for row in rows] == [("unchanged", "of no letter")] * 6


async def test_replays_of_letters_that_others_replayed_meanwhile_end(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert = """insert into dead_letter (id, queue, reason, body, headers, fingerprint)
        select gen_random_uuid(), 'event.received', 'met by two', '{}', '{}', gen_random_uuid()::text
        from generate_series(1, 6) returning id"""
    ids = [row["id"] for row in await api.house.rows(insert)]
    find = dead_letters.find

    async def found_by_two(session: Session, id: UUID) -> DeadLetter:
        letter = await find(session, id)
        with audited_change.apart():
            await dead_letters.drop(api.house.session, LetterFilter([id]))
        return letter

    monkeypatch.setattr(dead_letters, "find", found_by_two)
    async with api.caller() as caller:
        answers = await asyncio.gather(*(caller.post(f"/api/v1/dead-letters/{id}/replay") for id in ids))
    assert [answer.json().get("became") for answer in answers] == ["another caller replayed it"] * 6


async def test_refusals_of_requests_that_have_a_session_are_audited(api: Api) -> None:
    await api.token("pool-acme", "developer", tenants=("acme",))
    async with api.caller("pool-acme") as caller:
        answers = await asyncio.gather(
            *(caller.put("/api/v1/secrets/pin", json={"value": "abcdef"}) for _ in range(6))
        )
    assert [answer.status_code for answer in answers] == [403] * 6
    async with api.caller() as caller:
        rows = (await caller.get("/api/v1/audit?by=token:pool-acme")).json()["items"]
    assert [row["outcome"] for row in rows] == ["refused"]


async def test_a_task_has_at_most_one_session(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_pool, "SESSIONS", 2)
    pool = SessionPool(api.house.client.database)

    async def lent() -> Session:
        async with pool.session() as session:
            return session

    async with pool.session() as one:
        async with pool.session() as again:
            assert again is one
        assert await lent() is one
        other = await asyncio.create_task(lent())
        assert other is not one
    assert await lent() is one


async def test_a_request_is_refused_if_no_session_becomes_free(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_pool, "PATIENCE", 0.05)
    pool = SessionPool(api.house.client.database)

    async def one() -> int:
        async with pool.session() as session:
            return int((await session.fetch("select 1 as one"))[0]["one"])

    async with pool.session():
        with pytest.raises(ConnectionFailed, match="too many requests"):
            await asyncio.create_task(one())
    assert await asyncio.create_task(one()) == 1


async def test_returned_session_is_lent_to_another_task(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_pool, "SESSIONS", 2)
    pool = SessionPool(api.house.client.database)
    is_lent, may_return = asyncio.Event(), asyncio.Event()

    async def keep() -> Session:
        async with pool.session() as session:
            is_lent.set()
            await may_return.wait()
            return session

    async with pool.session() as before:
        pass
    other = asyncio.create_task(keep())
    await is_lent.wait()
    async with pool.session() as after:
        assert after is not before
    may_return.set()
    assert await other is before


async def test_session_returns_from_a_request_that_fails(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_pool, "PATIENCE", 0.05)
    pool = SessionPool(api.house.client.database)

    async def failing() -> None:
        async with pool.session(), pool.session():
            raise ValueError

    for _ in range(2):
        with pytest.raises(ValueError, match=r"^$"):
            await asyncio.create_task(failing())


async def test_statement_of_a_request_has_a_time_limit(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_pool, "MOST", 0.1)
    async with SessionPool(api.house.client.database).session() as session:
        with pytest.raises(asyncpg.QueryCanceledError):
            await session.fetch("select pg_sleep(20)")


async def test_pool_with_a_standby_reads_from_it(api: Api) -> None:
    near = Standby(api.house.settings(database_read_url=api.house.settings().database_url), role="test")
    pool = SessionPool(api.house.client.database, near)
    async with pool.session() as session:
        assert isinstance(session, StandbySession)
        await session.fetch("select 1 as one")
    assert near.behind == 0, "it was looked at"
    await near.close()


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
