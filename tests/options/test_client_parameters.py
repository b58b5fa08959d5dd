"""Every parameter of every public method of the clients: only a success or a typed error with a hint comes out of a call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from uuid import UUID

import httpx
import pytest

from penstock import Trigger
from penstock.client.http_client import HttpClient
from penstock.client.sync_client import SyncClient
from penstock.client.sync_http_client import SyncHttpClient
from penstock.errors import InvalidInput
from tests.options.client_methods import Call, calls, methods
from tests.options.odd_values import fault
from tests.penstock_api.conftest import Api, api, call  # noqa: F401 (fixtures)
from tests.penstock_api.test_sync_http_client import Elsewhere

FEW_SECONDS = 5
"""Seconds after which a call is taken to wait for nothing."""


async def answered(client: Any, id: UUID, outcome: Callable[[Callable[[], Any]], Awaitable[Any]]) -> None:
    """Make every call. Fails with each outcome that is neither a success nor a typed error with a hint."""
    faults, count = [], 0
    for name, method in methods(client).items():
        for walked in calls(name, method, id):
            count += 1
            try:
                async with asyncio.timeout(FEW_SECONDS):
                    await outcome(partial(method, *walked.positional, **walked.named))
            except Exception as error:
                if listed := wrong(walked, error):
                    faults.append(listed)
    assert count > 500
    assert not faults, f"{len(faults)} faults of {count} calls:\n" + "\n".join(faults)


def wrong(walked: Call, error: BaseException) -> str | None:
    if isinstance(error, TimeoutError) and walked.method in ("result", "run"):
        return None
    if isinstance(error, InvalidInput) and walked.method == "drawing":
        return fault(error, str(walked))  # the execution is not a workflow
    if isinstance(error, InvalidInput) and walked.is_legal:
        return f"{walked}: is legal, and refused: {error}"
    return fault(error, str(walked))


async def awaited(make: Callable[[], Any]) -> Any:
    return await make()


@pytest.fixture
async def id(api: Api) -> UUID:  # noqa: F811
    await api.house.apply(Trigger("shop.walked"))
    started = await api.house.client.start("shop.count", {"words": "a"})
    await api.house.client.result(started, timeout=20)
    return started


async def test_client_answers_every_value(api: Api, id: UUID) -> None:  # noqa: F811
    await answered(api.house.client, id, awaited)


async def test_http_client_answers_every_value(api: Api, id: UUID) -> None:  # noqa: F811
    transport = httpx.ASGITransport(api.app, raise_app_exceptions=False)
    async with HttpClient("http://penstock", token=api.secrets["all"], transport=transport) as client:
        await answered(client, id, awaited)


async def test_blocking_client_answers_every_value(api: Api, id: UUID) -> None:  # noqa: F811
    client = await asyncio.to_thread(SyncClient, api.house.settings())
    try:
        await answered(client, id, asyncio.to_thread)
    finally:
        await asyncio.to_thread(client.close)


async def test_blocking_http_client_answers_every_value(api: Api, id: UUID) -> None:  # noqa: F811
    transport = Elsewhere(api)
    client = SyncHttpClient("http://penstock", token=api.secrets["all"], transport=transport)
    try:
        await answered(client, id, asyncio.to_thread)
    finally:
        await asyncio.to_thread(client.close)
