"""One installation in which something of everything has happened, an API on a socket, and a real browser that looks at it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import httpx
import pytest
from playwright.async_api import Browser, expect

from penstock_api.app import make_app
from penstock_api.backend import Backend
from tests.flows.installation import Installation
from tests.penstock.operate import deadlines
from tests.penstock.operate.keys import KEY
from tests.penstock_api.conftest import Api
from tests.penstock_api.pages import depot
from tests.penstock_api.pages.provider import Provider, app_of, browser_of
from tests.penstock_api.serving import serving
from tests.servers import chromium, databases
from tests.servers.postgres import Postgres


@dataclass(slots=True)
class Site:
    """The address of the pages, and the objects that are worth a look there."""

    address: str
    house: Installation
    backend: Backend
    ids: dict[str, UUID]


@pytest.fixture(scope="package")
async def site(postgres_server: Postgres, template: str) -> AsyncIterator[Site]:
    name = databases.new_name()
    database = await databases.create(postgres_server, name, template=template)
    async with Installation(database, None, api_access="open", secrets_key=KEY) as house:
        await house.start(*depot.ALL, depot.wide(320), *deadlines.ALL)
        ids = await depot.fill(house)
        backend = Backend.of(house.client)
        async with serving(make_app(backend)) as address:
            yield Site(address, house, backend, ids)
            await house.client.cancel(*ids.values(), reason="the tests are over")
            await backend.changes.close()
    await databases.drop(postgres_server, name)


@pytest.fixture(scope="package")
async def browser() -> AsyncIterator[Browser]:
    expect.set_options(timeout=20_000)  # a busy machine takes longer than the five seconds that are usual
    async with chromium.started() as started:
        yield started


@pytest.fixture(scope="package")
def pictures() -> Path | None:
    """Return the folder for pictures of the pages, if one is requested."""
    given = os.environ.get("PENSTOCK_TEST_SCREENSHOTS")
    if not given:
        return None
    folder = Path(given)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
async def provider(api: Api) -> AsyncIterator[Provider]:
    found = Provider()
    async with serving(found.app()) as address:
        found.issuer = address
        yield found
    await api.house.rows("delete from person")
    await api.house.rows("delete from login_failure")


@pytest.fixture
async def person(api: Api, provider: Provider) -> AsyncIterator[httpx.AsyncClient]:
    async with browser_of(app_of(api, provider)) as client:
        yield client
