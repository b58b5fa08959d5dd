"""A proxy between a worker and its gateways. The proxy loses requests and answers, sends them twice, slows them and
changes them, as a case asks for, and it records all messages."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

import h11
import httpx
import orjson

PREFIX = "/api/v1/work/"
PIECE = 100
"""The bytes of each piece of a slow answer."""


@dataclass(slots=True)
class Fault:
    """A fault that hits the next `count` calls of a name. `kind`: `lose_request`, `lose_answer`, `twice`, `busy` (503), `slow`,
    `hold` (it waits for `released`)."""

    call: str
    kind: str
    count: int = 1
    released: asyncio.Event = field(default_factory=asyncio.Event)
    hits: int = 0


@dataclass(frozen=True, slots=True)
class Exchange:
    """A message of the worker with its answer. `status` is 0 if it got no answer."""

    call: str
    message: dict[str, Any]
    headers: dict[str, str]
    target: str
    status: int
    answer: dict[str, Any]


class FaultyProxy:
    """A proxy before `servers`, the addresses of gateways. Each call goes to the next of them."""

    def __init__(self, servers: Sequence[str]) -> None:
        self.servers = list(servers)
        self.exchanges: list[Exchange] = []
        self.faults: list[Fault] = []
        self.changed: Callable[[dict[str, Any]], dict[str, Any]] = lambda answer: answer
        """The change of each answer."""
        self.headers: list[tuple[str, str]] = []
        """Headers of each answer."""
        self.is_cut = False
        """True while the network is away: no call gets through, and no connection stays open."""
        self._client = httpx.AsyncClient(timeout=90, limits=httpx.Limits(max_connections=None))
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._turn = 0

    async def open(self) -> str:
        """Listen on a free port. Return the address."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        self.cut()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._client.aclose()

    def cut(self) -> None:
        """Close all connections, and refuse others until `mend`."""
        self.is_cut = True
        for task in self._connections:
            task.cancel()

    def mend(self) -> None:
        self.is_cut = False

    def plant(self, call: str, kind: str, count: int = 1) -> Fault:
        """Have a fault hit the next `count` calls of this name."""
        fault = Fault(call, kind, count)
        self.faults.append(fault)
        return fault

    def clear(self) -> None:
        """Remove all faults."""
        for fault in self.faults:
            fault.released.set()
        self.faults.clear()
        self.changed = lambda answer: answer
        self.headers.clear()
        self.mend()

    def of(self, call: str) -> list[Exchange]:
        """Return the exchanges of this name."""
        return [exchange for exchange in self.exchanges if exchange.call == call]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            if not self.is_cut:
                await self._exchange_all(reader, writer)
        except (ConnectionError, h11.RemoteProtocolError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(task)
            with contextlib.suppress(Exception):
                writer.transport.abort()

    async def _exchange_all(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = h11.Connection(h11.SERVER)
        while True:
            request, body = None, b""
            while True:
                event = connection.next_event()
                if event is h11.NEED_DATA:
                    connection.receive_data(await reader.read(65_536))
                elif isinstance(event, h11.Request):
                    request = event
                elif isinstance(event, h11.Data):
                    body += bytes(event.data)
                elif isinstance(event, h11.EndOfMessage):
                    break
                else:
                    return
            assert request is not None
            exchange = self._exchange(connection, writer, request, body)
            goes_on, early = await self._while_open(reader, exchange)
            if not goes_on:
                return
            if connection.our_state is not h11.DONE or connection.their_state is not h11.DONE:
                return
            connection.start_next_cycle()
            if early:
                connection.receive_data(early)

    async def _while_open(
        self, reader: asyncio.StreamReader, exchange: Coroutine[Any, Any, bool]
    ) -> tuple[bool, bytes]:
        """Return the result of an exchange, and what the worker has sent meanwhile. A worker that closes its connection
        cancels its call, as without a proxy."""
        exchanging = asyncio.ensure_future(exchange)
        closing = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait({exchanging, closing}, return_when=asyncio.FIRST_COMPLETED)
            if closing.done() and closing.result():  # the beginning of its next call
                await asyncio.wait({exchanging})
            goes_on = exchanging.done() and exchanging.result()
            return goes_on, closing.result() if closing.done() else b""
        finally:
            for task in (exchanging, closing):
                task.cancel()
            await asyncio.gather(exchanging, closing, return_exceptions=True)

    async def _exchange(
        self, connection: h11.Connection, writer: asyncio.StreamWriter, request: h11.Request, body: bytes
    ) -> bool:
        """Pass a call on. Return False if the connection has to be closed instead of an answer."""
        target = request.target.decode()
        call = target.rpartition("/")[2]
        headers = {name.decode(): value.decode() for name, value in request.headers}
        fault = self._fault_of(call)
        kind = "" if fault is None else fault.kind
        if fault is not None and kind == "hold":
            await fault.released.wait()
        if kind == "lose_request":
            self._record(call, body, headers, target, 0, b"")
            return False
        if kind == "busy":
            status, answer = 503, b'{"title": "Service Unavailable", "status": 503, "detail": "a fault"}'
        else:
            status, answer = await self._forward(target, headers, body)
            if kind == "twice":
                status, answer = await self._forward(target, headers, body)
        self._record(call, body, headers, target, 0 if kind == "lose_answer" else status, answer)
        if kind == "lose_answer" or status == 0:
            return False
        if answer and target.startswith(PREFIX):
            answer = orjson.dumps(self.changed(orjson.loads(answer)))
        kind_of_answer = "application/json" if status < 400 else "application/problem+json"
        answer_headers = [("content-type", kind_of_answer), *self.headers]
        if status != 204:
            answer_headers.append(("content-length", str(len(answer))))
        writer.write(connection.send(h11.Response(status_code=status, headers=answer_headers)) or b"")
        pieces = [answer[i : i + PIECE] for i in range(0, len(answer), PIECE)] if kind == "slow" else [answer]
        for piece in pieces:
            if piece:
                writer.write(connection.send(h11.Data(data=piece)) or b"")
            await writer.drain()
            if kind == "slow":
                await asyncio.sleep(0.01)
        writer.write(connection.send(h11.EndOfMessage()) or b"")
        await writer.drain()
        return True

    async def _forward(self, target: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        """Send a call to the next gateway. The status is 0 if that gateway is away."""
        self._turn += 1
        server = self.servers[self._turn % len(self.servers)]
        passed = {
            name: value
            for name, value in headers.items()
            if name not in ("host", "connection", "transfer-encoding")
        }
        try:
            answer = await self._client.post(server + target, content=body, headers=passed)
        except httpx.TransportError:
            return 0, b""
        return answer.status_code, answer.content

    def _fault_of(self, call: str) -> Fault | None:
        for fault in self.faults:
            if fault.call in (call, "*") and fault.hits < fault.count:
                fault.hits += 1
                return fault
        return None

    def _record(
        self, call: str, body: bytes, headers: dict[str, str], target: str, status: int, answer: bytes
    ) -> None:
        def decoded(content: bytes) -> dict[str, Any]:
            try:
                document = orjson.loads(content)
            except orjson.JSONDecodeError:
                return {}
            return document if isinstance(document, dict) else {}

        self.exchanges.append(Exchange(call, decoded(body), headers, target, status, decoded(answer)))
