"""`penstock api` as a process runs it: on a socket, until it is asked to stop."""

from __future__ import annotations

import asyncio
import socket

import httpx
import pytest

from penstock.errors import ConfigurationError
from penstock.service.assembly import Stop
from penstock_api.main import serve
from tests.penstock_api.conftest import Api


async def test_it_answers_until_it_is_asked_to_stop_and_ends_its_streams(api: Api) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    stop = Stop()
    serving = asyncio.create_task(serve(api.house.settings(api_port=port), stop))
    await stop.began.wait()
    headers = {"authorization": f"Bearer {api.secrets['all']}"}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}/api/v1", headers=headers) as caller:
        assert (await caller.get("/actions")).status_code == 200
        safe = (await caller.get("/nothing")).headers
        assert safe["content-type"] == "application/problem+json"
        assert "script-src 'self'" in safe["content-security-policy"]
        with pytest.raises(ConfigurationError, match=str(port)) as taken:
            await serve(api.house.settings(api_port=port), Stop())
        assert "PENSTOCK_API_PORT" in str(taken.value.hint)
        async with caller.stream("GET", "/stream") as stream:
            lines = stream.aiter_lines()
            while await anext(lines) != ": watching":
                pass
            stop.ask()
            async for _ in lines:
                pass  # it ends
    await serving
