"""The client over HTTP for code that does not await."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import httpx
import pytest

from penstock.client.http_client import HttpClient
from penstock.client.sync_http_client import SyncHttpClient
from penstock.errors import NotFound
from penstock.language.terms.ids import new_id
from tests.flows.shop import count
from tests.penstock_api.conftest import Api


class Elsewhere(httpx.AsyncBaseTransport):
    """Calls the API in the loop of the test, whatever loop the client is in."""

    def __init__(self, api: Api) -> None:
        self._loop = asyncio.get_running_loop()
        self._there = httpx.ASGITransport(app=api.app)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        asked = asyncio.run_coroutine_threadsafe(self._answer(request), self._loop)
        return await asyncio.wrap_future(asked)

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        answer = await self._there.handle_async_request(request)
        return httpx.Response(answer.status_code, headers=answer.headers, content=await answer.aread())


def public(of: Any) -> set[str]:
    return {name for name, _ in inspect.getmembers(of, inspect.isroutine) if not name.startswith("_")}


async def test_it_starts_waits_and_reads_from_a_thread_without_a_loop(api: Api) -> None:
    transport = Elsewhere(api)

    def script() -> None:
        with SyncHttpClient("http://penstock", token=api.secrets["all"], transport=transport) as client:
            with pytest.raises(NotFound):
                client.described(new_id())
            with pytest.raises(NotFound):
                client.rules.enable("shop.nobody", True)
            assert client.run("shop.count", {"words": "a b"}, timeout=20) == 2
            assert client.run(count.call("a b"), timeout=20) == 2
            id = client.start("shop.count", {"words": "a"}, key="sync-http-client")
            assert client.start("shop.count", {"words": "a"}, key="sync-http-client") == id
            assert client.result(id, timeout=20) == 1
            assert [move.new for move in client.history(id)][-1] == "completed"
            assert "worker" in {process.kind for process in client.workers.all()}

    await asyncio.to_thread(script)


async def test_it_has_every_method_that_the_client_has() -> None:
    client = SyncHttpClient("http://127.0.0.1:1")
    there = HttpClient("http://127.0.0.1:1")
    try:
        assert public(client) == public(there) | {"close"}
        for part in ("breakers", "limits", "rules", "schedules", "workers"):
            assert public(getattr(client, part)) == public(getattr(there, part)), part
    finally:
        client.close()
