"""The edges of HTTP at the API: refusals before a route are problem documents, and HEAD is answered wherever GET is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import httpx
import pytest

from penstock_api.auth import same_origin
from tests.penstock_api.auth.test_access import guarded
from tests.penstock_api.conftest import Api
from tests.penstock_api.serving import serving

JSON = {"content-type": "application/json"}
STREAMS = ("/api/v1/stream",)


@pytest.fixture
async def address(api: Api) -> AsyncIterator[str]:
    async with serving(api.app) as address:
        yield address


@pytest.fixture
async def wire(api: Api, address: str) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"authorization": f"Bearer {api.secrets['all']}"}
    async with httpx.AsyncClient(base_url=address, headers=headers, timeout=30) as client:
        yield client


def problem(answer: httpx.Response) -> int:
    """Return the status of an answer that is a problem document with a title and a detail."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    document = answer.json()
    assert document["status"] == answer.status_code
    assert document["title"]
    assert document["detail"]
    return answer.status_code


async def pieces(count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield b" " * 65_536


@pytest.mark.parametrize(
    "path",
    ["/api/v1/executions", "/api/v1/events", "/api/v1/tokens", "/api/v1/session", "/hooks/x", "/sign-in"],
)
async def test_body_over_the_bound_is_a_problem(wire: httpx.AsyncClient, path: str) -> None:
    for content in (b" " * 2_000_000, pieces(40)):
        try:
            answer = await wire.post(path, content=content, headers=JSON)
        except httpx.WriteError:
            continue  # the connection was closed while the rest of the body was sent
        assert problem(answer) == (404 if path == "/hooks/x" and answer.status_code == 404 else 413)


@pytest.mark.parametrize(
    "path", ["/api/v1/executions", "/api/v1/events", "/api/v1/tokens", "/api/v1/session"]
)
@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"\xff\xfe", b"nul", b'{"a": 1e999}', b"[" * 100_000, b'"' + b"x" * 10]
)
async def test_body_that_is_not_json_is_a_problem(wire: httpx.AsyncClient, path: str, body: bytes) -> None:
    assert problem(await wire.post(path, content=body, headers=JSON)) in (400, 422)


async def test_malformed_form_is_a_problem_or_a_page(wire: httpx.AsyncClient) -> None:
    for body in (b"%", b"&" * 5000, b"a=" * 5000, b"\xff=\xfe"):
        for path in ("/sign-in", "/hooks/x"):
            answer = await wire.post(
                path, content=body, headers={"content-type": "application/x-www-form-urlencoded"}
            )
            assert answer.status_code < 500


async def test_every_get_route_answers_head_without_a_body(api: Api, wire: httpx.AsyncClient) -> None:
    """A stream ends with its head; of every other route the head is that of GET."""
    ids = {"id": "00000000-0000-7000-8000-000000000000", "ref": "shop.count", "name": "x", "file": "x"}
    paths = [one.path.format(**ids) for one in guarded(api.app) if one.method == "GET"]
    assert len(paths) > 50
    for path in (*paths, "/docs", "/api/v1/openapi.json", "/sign-in"):
        async with asyncio.timeout(10):
            head = await wire.head(path)
        assert head.content == b""
        if path in STREAMS:
            assert head.status_code == 200
            continue
        whole = await wire.get(path)
        assert (head.status_code, head.headers.get("content-type")) == (
            whole.status_code,
            whole.headers.get("content-type"),
        ), path


async def test_head_of_an_open_page_ends(api: Api, wire: httpx.AsyncClient) -> None:
    async with asyncio.timeout(10):
        head = await wire.head("/executions", headers={"accept": "text/event-stream"})
    assert (head.status_code, head.content) == (200, b"")


async def test_head_without_a_get_route_is_refused(wire: httpx.AsyncClient) -> None:
    assert (await wire.head("/sign-out")).status_code == 405
    assert (await wire.head("/api/v1/nothing")).status_code == 404


async def test_request_with_two_hosts_is_refused(address: str) -> None:
    parts = urlsplit(address)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(b"GET /docs HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n")
    async with asyncio.timeout(10):
        answer = await reader.read()
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b" 400 " in head.splitlines()[0]
    assert json.loads(body)["detail"] == "a request must have exactly one Host header"


async def test_malformed_host_and_origin_are_refused(wire: httpx.AsyncClient) -> None:
    for headers in ({"origin": "http://["}, {"origin": "http://[::"}):
        answer = await wire.post("/api/v1/events", json={"trigger": "shop.called"}, headers=headers)
        assert problem(answer) == 403
    assert same_origin.refused("GET", {"host": "["}, loopback=True) is not None
    assert same_origin.refused("GET", {"host": "localhost:8000"}, loopback=True) is None
