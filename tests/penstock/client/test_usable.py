"""Clients after their `close`, and in a process that was forked from theirs: a typed error, and no call that hangs."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import httpx
import pytest

from penstock.client.client import Client
from penstock.client.http_client import HttpClient
from penstock.client.sync_client import SyncClient
from penstock.client.sync_http_client import SyncHttpClient
from penstock.errors import ClientUnusable, ConnectionFailed, PenstockError
from tests.flows import shop
from tests.flows.installation import Installation

ID = UUID(int=7)
CALLS: dict[str, Callable[[Any], Any]] = {
    "start": lambda client: client.start("shop.charge", {"order": 7}),
    "run": lambda client: client.run("shop.charge", {"order": 7}, timeout=1),
    "result": lambda client: client.result(ID, timeout=1),
    "publish": lambda client: client.publish("shop.order_placed", {"id": 7}),
    "overview": lambda client: client.overview(),
    "limits": lambda client: client.limits.all(),
    "schedules": lambda client: client.schedules.all(),
}
FORK_HINT = "Create a client in each process, after the fork."
PATIENCE_S = 30
"""The seconds after which a call counts as one that hangs."""


def http_client() -> SyncHttpClient:
    return SyncHttpClient(
        "http://penstock.test", transport=httpx.MockTransport(lambda _: httpx.Response(500))
    )


@pytest.fixture(params=[SyncClient, SyncHttpClient])
async def client(request: pytest.FixtureRequest, house: Installation) -> Any:
    if request.param is SyncHttpClient:
        yield http_client()
        return
    await house.apply(*shop.ALL)
    connected = await asyncio.to_thread(SyncClient, house.settings())
    yield connected
    await asyncio.to_thread(connected.close)


def hint_of(call: Callable[[Any], Any], client: Any) -> str | None:
    try:
        call(client)
    except ClientUnusable as error:
        return error.hint
    return None


def in_a_fork(client: Any, hints: Any) -> None:
    hints.put({name: hint_of(call, client) for name, call in CALLS.items()})
    client.close()
    hints.put({"closed": "at once"})


@pytest.mark.either_transport
async def test_calls_after_a_fork_name_the_remedy(client: Any) -> None:
    context = multiprocessing.get_context("fork")
    hints = context.Queue()
    child = context.Process(target=in_a_fork, args=(client, hints))
    child.start()
    try:
        assert await asyncio.to_thread(hints.get, timeout=PATIENCE_S) == dict.fromkeys(CALLS, FORK_HINT)
        assert await asyncio.to_thread(hints.get, timeout=PATIENCE_S) == {"closed": "at once"}
    finally:
        child.kill()
        child.join()
    assert isinstance(await asyncio.to_thread(refusal, client), PenstockError | None), (
        "the parent's client goes on"
    )


def refusal(client: Any) -> PenstockError | None:
    """Return the error of a call that reaches the server, which a client over HTTP does not have here."""
    try:
        client.overview()
    except ClientUnusable:
        raise
    except PenstockError as error:
        return error
    return None


@pytest.mark.either_transport
async def test_calls_after_close_name_the_remedy(client: Any) -> None:
    parts = client.limits, client.schedules
    await asyncio.to_thread(client.close)
    hints = {name: hint_of(call, client) for name, call in CALLS.items()}
    assert hints == dict.fromkeys(CALLS, "Create another client, or close it after its last call.")
    assert {hint_of(lambda part: part.all(), part) for part in parts} == set(hints.values())
    await asyncio.to_thread(client.close)


def test_call_that_another_thread_waits_for_ends_with_the_close() -> None:
    asked = threading.Event()

    async def answer(_: httpx.Request) -> httpx.Response:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    client = SyncHttpClient("http://penstock.test", transport=httpx.MockTransport(answer))
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(client.overview)
        assert asked.wait(PATIENCE_S)
        client.close()
        with pytest.raises((ClientUnusable, ConnectionFailed)):
            call.result(timeout=PATIENCE_S)


@pytest.mark.either_transport
async def test_closed_async_clients_name_the_remedy(house: Installation) -> None:
    async with Client.connect(house.settings()) as client:
        await client.overview()
    async with HttpClient("http://penstock.test") as http:
        parts = http.limits
    for call in (client.overview, client.flush, http.overview, parts.all):
        with pytest.raises(ClientUnusable, match="closed"):
            await call()
