"""A stream ends once its token is revoked, has expired, or its person has other rights."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import httpx
import pytest

from penstock.operate import access
from penstock_api import backend
from penstock_api.live import guarded_streams, open_pages
from tests.penstock_api.conftest import Api
from tests.penstock_api.serving import serving

PAGES = {"accept": "text/event-stream"}


async def revoke(api: Api) -> None:
    await access.revoke_token(api.house.session, "leaver")


async def expire(api: Api) -> None:
    await api.house.rows(
        "update api_token set expires_at = clock_timestamp() where name = 'leaver' returning 1"
    )


async def move(api: Api) -> None:
    await api.house.rows("update api_token set tenants = '{acme}' where name = 'leaver' returning 1")


@pytest.mark.parametrize("change", [revoke, expire, move])
@pytest.mark.parametrize("path", ["/api/v1/stream", "/executions"])
async def test_stream_ends_with_the_rights_of_its_caller(
    api: Api, path: str, change: Callable[[Api], Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The change is made elsewhere: this process is not told of it, and nothing moves that would be shown."""
    monkeypatch.setattr(backend, "KNOWN_FOR", 0.1)
    monkeypatch.setattr(guarded_streams, "LOOK_EVERY", 0.1)
    monkeypatch.setattr(open_pages, "QUIET", 0.1)
    await api.house.rows("delete from api_token where name = 'leaver'")
    await api.token("leaver", "read", tenants=("acme", "public"))
    headers = {"authorization": f"Bearer {api.secrets['leaver']}", **PAGES}
    async with (
        serving(api.app) as address,
        httpx.AsyncClient(base_url=address, headers=headers, timeout=30) as client,
        client.stream("GET", path) as stream,
    ):
        assert stream.status_code == 200
        parts = stream.aiter_raw()
        await anext(parts)
        await change(api)
        async with asyncio.timeout(30):
            async for _ in parts:
                pass  # it ends
