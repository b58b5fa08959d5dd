"""The connections of the API: requests that are under way when the server stops."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI
from fastapi.responses import StreamingResponse

from tests.penstock_api.serving import serving


@pytest.mark.parametrize("body", [b"", b"x" * 100], ids=["empty", "read"])
async def test_waiting_request_is_answered_503_at_shutdown(
    caplog: pytest.LogCaptureFixture, body: bytes
) -> None:
    app, waits = FastAPI(), asyncio.Event()

    @app.post("/waits")
    async def wait() -> None:
        waits.set()
        await asyncio.Event().wait()

    async with httpx.AsyncClient(timeout=30) as client:
        with caplog.at_level(logging.INFO):
            async with serving(app) as address:
                request = asyncio.create_task(client.post(f"{address}/waits", content=body))
                await waits.wait()
            answer = await request
    assert answer.status_code == 503
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["hint"].startswith("Send the request again")
    assert not [record for record in caplog.records if record.exc_info]


async def test_begun_answer_is_cut_off_at_shutdown(caplog: pytest.LogCaptureFixture) -> None:
    app, begun = FastAPI(), asyncio.Event()

    @app.get("/endless")
    async def endless() -> StreamingResponse:
        async def parts() -> AsyncIterator[bytes]:
            yield b"begun"
            begun.set()
            await asyncio.Event().wait()

        return StreamingResponse(parts())

    async with httpx.AsyncClient(timeout=30) as client:
        with caplog.at_level(logging.INFO):
            async with serving(app) as address:
                request = asyncio.create_task(client.get(f"{address}/endless"))
                await begun.wait()
            with pytest.raises(httpx.RemoteProtocolError):
                await request
    assert not [record for record in caplog.records if record.exc_info]
