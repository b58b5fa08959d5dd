"""A small HTTP/1.1 server for tests of the http executor. Handlers see the whole request and when it is
dropped.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from penstock.testing.scenarios import TICK, mark, stopped, there, ticks


@dataclass(slots=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(slots=True)
class Answer:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    hang_up: bool = False


Handler = Callable[[Request], Awaitable[Answer]]


class Web:
    """Routes are added to `routes`; what arrived is in `requests`."""

    def __init__(self) -> None:
        self.routes: dict[str, Handler] = {}
        self.requests: list[Request] = []
        self.port = 0
        self.connections = 0

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    def answer(self, path: str, *answers: Answer) -> None:
        """Answer requests for `path` with these in turn, the last one again and again."""
        left = list(answers)

        async def handler(_: Request) -> Answer:
            return left.pop(0) if len(left) > 1 else left[0]

        self.routes[path] = handler

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while (request := await _read(reader)) is not None:
                self.requests.append(request)
                handling = asyncio.ensure_future(self.routes[request.path](request))
                # A client says nothing while it waits: what can be read now is that it is gone.
                gone = asyncio.ensure_future(reader.read(1))
                await asyncio.wait([handling, gone], return_when=asyncio.FIRST_COMPLETED)
                gone.cancel()
                if not handling.done():
                    handling.cancel()
                    break
                with suppress(asyncio.CancelledError):
                    await gone
                answer = handling.result()
                if answer.hang_up:
                    break
                _write(writer, answer)
                await writer.drain()
        writer.close()


@asynccontextmanager
async def serving() -> AsyncIterator[Web]:
    web = Web()
    server = await asyncio.start_server(web.serve, "127.0.0.1", 0)
    web.port = server.sockets[0].getsockname()[1]
    try:
        yield web
    finally:
        server.close()


def serve_scenarios(web: Web) -> None:
    """The scenarios of the conformance suite, as `/<scenario>`."""

    async def echo(request: Request) -> Answer:
        said = request.json
        return _json(
            {
                "value": said["params"]["value"],
                "attempt": said["attempt"],
                "token": said["idempotency_token"],
            }
        )

    async def hold(request: Request) -> Answer:
        path = request.json["params"]["path"]
        mark(path + ".held")
        for _ in ticks():
            if there(path):
                return _json("released")
            await asyncio.sleep(TICK)
        return Answer(500)

    async def beat(request: Request) -> Answer:
        for _ in ticks():
            if stopped(request.json["params"]["path"]):
                break
            await asyncio.sleep(TICK)
        return Answer()

    web.routes |= {"/echo": echo, "/hold": hold, "/beat": beat}
    web.answer("/fail", Answer(422, b"boom"))
    web.answer("/unstorable", Answer(200, b"this is not JSON"))
    web.answer("/crash", Answer(hang_up=True))


def _json(value: object) -> Answer:
    return Answer(200, json.dumps(value).encode())


async def _read(reader: asyncio.StreamReader) -> Request | None:
    line = await reader.readline()
    if not line:
        return None
    method, path, _ = line.decode().split()
    headers: dict[str, str] = {}
    while (line := await reader.readline()).strip():
        name, _, value = line.decode().partition(":")
        headers[name.lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(method, path, headers, body)


def _write(writer: asyncio.StreamWriter, answer: Answer) -> None:
    headers = {"Content-Length": str(len(answer.body)), **answer.headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(f"HTTP/1.1 {answer.status} X\r\n{lines}\r\n".encode() + answer.body)
