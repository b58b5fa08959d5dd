"""The port of the API: heads, bodies and connections are bounded, and what exceeds a bound is refused as a problem document."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest

from penstock_api.requests import connections
from tests.penstock_api.conftest import Api
from tests.penstock_api.serving import serving

GOOD = b"GET /api/v1/actions HTTP/1.1\r\nHost: x\r\n%b\r\n"
SOON = 0.3


class Port:
    def __init__(self, address: str, token: str) -> None:
        parts = urlsplit(address)
        assert parts.port is not None
        self.at = ("127.0.0.1", parts.port)
        self.token = f"Authorization: Bearer {token}\r\n".encode()

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(*self.at)

    async def ask(self, data: bytes) -> bytes:
        """Send, and return all that comes until the other side closes."""
        reader, writer = await self.open()
        try:
            writer.write(data)
            return await rest(reader)
        finally:
            writer.close()

    async def answers(self) -> bool:
        reader, writer = await self.open()
        try:
            writer.write(GOOD % self.token)
            async with asyncio.timeout(30):
                return b" 200 " in await reader.readline()
        finally:
            writer.close()


async def rest(reader: asyncio.StreamReader) -> bytes:
    answer = b""
    async with asyncio.timeout(30):
        try:
            while part := await reader.read(65536):
                answer += part
        except ConnectionError:
            pass  # it was refused while it still sent
    return answer


@pytest.fixture
async def port(api: Api) -> AsyncIterator[Port]:
    async with serving(api.app) as address:
        yield Port(address, api.secrets["all"])


def problem(answer: bytes) -> int:
    """Return the status of an answer that is a problem document."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head, answer[:300]
    status = int(head.split(b" ")[1])
    assert json.loads(body)["status"] == status
    return status


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"X: " + b"x" * 8 * 2**20 + b"\r\n", 431),
        (b"X: x\r\n" * 50_000, 431),
        (b"Host: y\r\n", 400),
        (b"X: " + b"x" * 70_000 + b"\r\n", 431),
    ],
)
async def test_head_that_exceeds_a_bound_is_refused(port: Port, head: bytes, status: int) -> None:
    assert problem(await port.ask(GOOD % (port.token + head))) == status
    assert await port.answers()


async def test_head_of_ordinary_size_is_answered(port: Port) -> None:
    head = port.token + b"X: " + b"x" * 30_000 + b"\r\nConnection: close\r\n"
    assert (await port.ask(GOOD % head)).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET /api/v1/actions HTTP/1.1\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"GET /%s HTTP/1.1\r\nHost: x\r\n\r\n" % (b"x" * 100_000), 431),
        (b"\r\n" * 40_000, 431),
    ],
)
async def test_odd_request_is_refused_with_a_problem(port: Port, data: bytes, status: int) -> None:
    assert problem(await port.ask(data)) == status
    assert await port.answers()


async def test_trailer_without_end_is_refused(port: Port) -> None:
    reader, writer = await port.open()
    head = b"POST /api/v1/events HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
    writer.write(head + port.token + b"\r\n2\r\n{}\r\n0\r\n")
    try:
        for _ in range(200):
            writer.write(b"a: " + b"b" * 4096 + b"\r\n")
            await writer.drain()
    except ConnectionError:
        pass
    assert b"200 OK" not in await rest(reader)
    writer.close()
    assert await port.answers()


async def test_half_requests_are_cut(port: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", SOON)
    monkeypatch.setattr(connections, "BODY_SECONDS", SOON)
    halves = [
        b"",
        b"GET /api/v1/act",
        b"GET /api/v1/actions HTTP/1.1\r\nHost: x\r\nX: ",
        b"POST /api/v1/events HTTP/1.1\r\nHost: x\r\n" + port.token + b"Content-Length: 100\r\n\r\n{",
        b"POST /api/v1/session HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
    ]
    opened = [await port.open() for _ in range(80)]
    for n, (_, writer) in enumerate(opened):
        writer.write(halves[n % len(halves)])
    answers = await asyncio.gather(*(rest(reader) for reader, _ in opened))
    assert {problem(answer) for answer in answers} == {408}
    for _, writer in opened:
        writer.close()
    assert await port.answers()


async def test_second_request_of_a_connection_is_cut_too(port: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", SOON)
    reader, writer = await port.open()
    writer.write(GOOD % port.token)
    assert b" 200 " in await reader.readline()
    writer.write(b"\r\nGET /api")
    assert b"HTTP/1.1 408 " in await rest(reader)
    writer.close()


async def test_request_under_way_outlives_the_bounds(port: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", SOON)
    monkeypatch.setattr(connections, "BODY_SECONDS", SOON)
    reader, writer = await port.open()
    watch = b"GET /api/v1/stream?seconds=2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    writer.write(watch + port.token + b"\r\n")
    answer = await rest(reader)
    assert b": watching" in answer
    assert answer.endswith(b"0\r\n\r\n"), "the stream was cut before its end"
    writer.close()


async def test_connections_are_bounded_and_the_oldest_idle_makes_room(
    port: Port, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "CONNECTIONS", 20)
    stream, stream_writer = await port.open()
    stream_writer.write(b"GET /api/v1/stream?seconds=60 HTTP/1.1\r\nHost: x\r\n" + port.token + b"\r\n")
    await stream.readuntil(b": watching")
    silent = [await port.open() for _ in range(40)]
    for _, writer in silent[::2]:
        writer.write(b"GET /live HTT")
    for _ in range(5):
        assert await port.answers()
    last_bytes = [await asyncio.wait_for(reader.read(), 30) for reader, _ in silent[:15]]
    assert last_bytes == [b""] * 15, "the oldest were not closed"
    assert not stream.at_eof()
    for _, writer in (*silent, (stream, stream_writer)):
        writer.close()


async def test_stream_over_http_1_0_has_no_chunks(port: Port) -> None:
    answer = await port.ask(b"GET /api/v1/stream?seconds=0.5 HTTP/1.0\r\n" + port.token + b"\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in head.lower()
    assert body.startswith((b"retry:", b":")), body[:100]
