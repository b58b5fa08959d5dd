"""The port for health and metrics: whatever is sent to it, it answers the next one, and logs no fault of its own."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from penstock.messaging.metrics import Metrics
from penstock.messaging.supervision import Supervisor
from penstock.service.health import Health, listen
from penstock.settings import Settings

GOOD = b"GET /live HTTP/1.1\r\nHost: localhost\r\nA: b\r\n\r\n"
ODD = [
    (b"HEAD /live HTTP/1.1\r\nHost: localhost\r\n\r\n", 200),
    (b"GET /live HTTP/1.0\r\n\r\n", 200),
    (b"GET /live?" + b"x" * 4000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 200),
    (b"GET /live HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n", 200),
    (GOOD * 500, 200),
    (b"GET http://elsewhere/live HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
    (b"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
    (b"CONNECT /live HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
    (
        b"POST /live HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 99999999999\r\n\r\nxx",
        405,
    ),
    (
        b"POST /live HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
        405,
    ),
    (b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    (b"GET /live HTTP/1.1\r\n\r\n", 400),
    (b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400),
    (b"GET /metrics HTTP/1.1\r\nHost: rebound.example:9090\r\n\r\n", 421),
    (b"GET /metrics HTTP/1.1\r\nHost: [\r\n\r\n", 421),
    (b"GET /live HTTP/1.1\r\nHost: [::1]:9090\r\n\r\n", 200),
    (b"GET /live HTTP/1.1\r\nHost: 127.0.0.1:9090\r\n\r\n", 200),
    (b"GET /live HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 400),
    (b"\r\n" * 5000, 400),
    (b"GET /live HTTP/1.1\r\n" + b"a: b\r\n" * 5000, 431),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    (b"", None),
]


@dataclass
class Port:
    """Somebody at the port, and what the event loop was told of exceptions that nobody caught."""

    health: Health
    faults: list[Any] = field(default_factory=list)

    async def ask(self, data: bytes) -> bytes:
        """Return the bytes that come back until the other side closes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.health.port)
        answer = b""
        try:
            writer.write(data)
            writer.write_eof()
            async with asyncio.timeout(20):
                while part := await reader.read(4096):
                    answer += part
        except ConnectionError:
            pass  # it had read enough
        finally:
            writer.close()
        return answer


@pytest.fixture
async def port() -> AsyncIterator[Port]:
    async def ready() -> None:
        """Name no reason that the service is not ready."""

    found = Port(await listen(Settings(port=0, host="127.0.0.1"), Supervisor(), Metrics(), ready))
    asyncio.get_running_loop().set_exception_handler(lambda _, context: found.faults.append(context))
    yield found
    await found.health.close()


@pytest.mark.parametrize(("data", "status"), ODD, ids=lambda one: repr(one)[:30])
async def test_an_odd_request_has_its_answer(port: Port, data: bytes, status: int | None) -> None:
    answer = await port.ask(data)
    assert answer.split(b" ", 2)[1:2] == ([] if status is None else [str(status).encode()]), answer
    assert (await port.ask(GOOD)).endswith(b"live\n")
    assert not port.faults, port.faults


async def test_any_bytes_are_answered_or_refused(port: Port) -> None:
    draw = random.Random(8)
    for _ in range(300):
        data = bytearray(GOOD)
        for _ in range(draw.randint(1, 6)):
            at = draw.randrange(len(data) + 1)
            data[at : at + draw.randint(0, 4)] = draw.randbytes(draw.randint(0, 4))
        answer = await port.ask(bytes(data))
        assert answer == b"" or answer.startswith(b"HTTP/1.1 "), (bytes(data), answer)
    assert (await port.ask(GOOD)).endswith(b"live\n")
    assert not port.faults, port.faults


async def test_silent_connections_keep_no_other_waiting(port: Port) -> None:
    silent = [await asyncio.open_connection("127.0.0.1", port.health.port) for _ in range(200)]
    for _, writer in silent[::2]:
        writer.write(b"GET /live HTT")
    assert (await port.ask(GOOD)).endswith(b"live\n")
    for _, writer in silent:
        writer.close()
    assert not port.faults, port.faults
