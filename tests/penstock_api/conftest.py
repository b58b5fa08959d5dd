"""ONE installation for all of these tests, with an API in this process: nothing is sent over a wire."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from penstock import Limit, Schedule, Trigger
from penstock.client.client import Client
from penstock.language.workflows import from_yaml
from penstock.operate.access import create_token
from penstock.service.assembly import assembled
from penstock_api import session_pool
from penstock_api.app import make_app
from penstock_api.backend import Backend
from tests.flows import shop
from tests.flows.installation import AS_USED, Installation
from tests.penstock.operate.keys import KEY
from tests.servers import databases
from tests.servers.postgres import Postgres

THEIRS = "theirs"
"""A tenant that the callers of most tests have nothing to do with."""

DEFINED = (
    *shop.ALL,
    *shop.STURDY,
    Schedule("shop.nightly", action=shop.count, cron="0 2 * * *", params={"words": "good night"}),
    Trigger("shop.called"),
    Limit(2, ref="shop.door", scope="shop.wait_for"),
    from_yaml("""
workflow: shop.approved
tasks:
  first: {action: shop.count, input: {words: "a b"}}
  ask: {inquiry: {prompt: "May it be charged?", schema: {type: boolean}}, needs: [first]}
  last: {action: shop.charge, input: {order: 1}, needs: [ask]}
"""),
)


@dataclass(slots=True)
class Api:
    """An API, its installation, and callers of it."""

    app: FastAPI
    house: Installation
    secrets: dict[str, str]

    def caller(self, name: str | None = "all") -> httpx.AsyncClient:
        """Return a client with the token of that name, or without any for None."""
        headers = {} if name is None else {"authorization": f"Bearer {self.secrets[name]}"}
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        return httpx.AsyncClient(transport=transport, base_url="http://penstock", headers=headers, timeout=30)

    async def token(self, name: str, *scopes: str, tenants: tuple[str, ...] = (), **more: Any) -> None:
        _, self.secrets[name] = await create_token(
            self.house.session, name, scopes, tenants=tenants, by="test", **more
        )


@pytest.fixture(scope="session", autouse=True)
def one_session() -> Iterator[None]:
    """Give each API one session for its requests, so that one which borrows a second session, while it keeps the first,
    fails in any test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session_pool, "SESSIONS", 1)
        patch.setattr(session_pool, "PATIENCE", 60.0)  # a busy machine
        yield


@asynccontextmanager
async def api_of_its_own(postgres_server: Postgres, template: str) -> AsyncIterator[Api]:
    """An API and its installation, in a database of its own."""
    name = databases.new_name()
    async with Installation(
        await databases.create(postgres_server, name, template=template), None, secrets_key=KEY
    ) as house:
        await house.start(*DEFINED)
        # Workers that call it are patient: nothing is taken for lost because a busy machine let it wait.
        async with assembled(house.settings(**AS_USED), role="api") as parts:
            backend = Backend.of(Client(parts.settings, parts.database, parts.publisher))
            made = Api(make_app(backend), house, {})
            await made.token("all", "administrator", "work")
            yield made
            await backend.close()
    await databases.drop(postgres_server, name)


@pytest.fixture(scope="package")
async def api(postgres_server: Postgres, template: str) -> AsyncIterator[Api]:
    async with api_of_its_own(postgres_server, template) as shared:
        yield shared


@pytest.fixture
async def call(api: Api) -> AsyncIterator[httpx.AsyncClient]:
    """Return a client with all scopes."""
    async with api.caller() as client:
        yield client
