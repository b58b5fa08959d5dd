"""The connections of the API, with bounds on the head of a request, on the time until it has arrived, and on their
number.

uvicorn's parser accepts a head of any size, and waits for the rest of a request without end. The classes below add
these bounds.
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from weakref import WeakKeyDictionary

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from penstock.service.problems import KIND, Problem

HEAD_BYTES = 64 * 1024
"""The maximum size of a request line and header, in bytes."""
HEAD_SECONDS = 10.0
"""The maximum seconds from the connection, or from the previous answer, until the head of a request is complete."""
BODY_SECONDS, BODY_BYTES = 10.0, 8 * 1024
"""The minimum speed of a body: fewer than BODY_BYTES bytes in BODY_SECONDS seconds close the connection."""
CONNECTIONS = 4096
"""The maximum number of connections of a process. The number is also at most three quarters of the files that the
process may open."""

App = Callable[[MutableMapping[str, Any], Any, Any], Awaitable[None]]
_idle: WeakKeyDictionary[ServerState, dict[BoundedProtocol, None]] = WeakKeyDictionary()
"""For each server, its connections without a complete request, in the order in which they began to wait."""


def connections_at_most() -> int:
    """Return the maximum number of connections of this process."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return CONNECTIONS if soft == resource.RLIM_INFINITY else max(1, min(CONNECTIONS, soft * 3 // 4))


class Refused(Exception):
    """A refusal of a request before it reaches the application."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.problem = Problem(title=STATUS_LINE[status][13:-2].decode(), status=status, detail=detail)


STOPPED = Problem(
    title="Service Unavailable",
    status=503,
    detail="the API process stopped before it had answered the request",
    hint="Send the request again, with its idempotency key if it has one.",
)


class BoundedProtocol(HttpToolsProtocol):
    """A connection that refuses heads over HEAD_BYTES, and slow heads and bodies."""

    _timer: asyncio.TimerHandle | None = None
    _head = 0
    """The bytes of the head that have arrived."""
    _in_head = True
    _in_body = False
    _body = 0
    """The bytes of the body that have arrived since the timer was set."""
    _unclaimed = 0
    """The bytes of the body that the parser has not passed on: a trailer, or a chunk extension."""
    _refused: Refused | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()
        if len(self.connections) <= connections_at_most():
            return
        # A connection that only waits is closed to make room. A request that is under way is never cut off.
        oldest = next(iter(_idle[self.server_state]))
        if oldest is self:
            self._refuse(Refused(503, "this API process has reached its maximum number of connections"))
        else:
            oldest.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._go_on()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused is not None:
            return  # ignore the rest of a refused request
        if self._timer is None and not self._in_body:
            self._wait()  # wait for the head of the next request
        if self._in_head:
            self._head += len(data)
        elif self._in_body:
            self._body += len(data)
            self._unclaimed += len(data)
        super().data_received(data)
        if (
            self._refused is None
            and max(self._in_head and self._head, self._in_body and self._unclaimed) > HEAD_BYTES
        ):
            self._refuse(_too_large())

    def on_message_begin(self) -> None:
        self._in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head, self._head, self._unclaimed = False, 0, 0
        try:
            _check_head(self.url, self.headers, self.parser.get_http_version())
        except Refused as refused:
            self._refuse(refused)
            raise  # so that the parser stops
        self._in_body = True
        self._arm(BODY_SECONDS)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unclaimed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_body, self._in_head = False, True
        self._go_on()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.pipeline and not self.transport.is_closing():
            _idle.setdefault(self.server_state, {})[self] = None

    def send_400_response(self, msg: str) -> None:
        """Answer a request that the parser refused, unless a check inside the parser has answered it."""
        if self._refused is None:
            self._refuse(Refused(400, "this is not an HTTP request"))

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        if cycle.scope["http_version"] == "1.0":
            app = _without_chunks(app, cycle)
        super()._start_asgi_task(cycle, _answered_at_shutdown(app, cycle))

    def _started(self) -> bool:
        """Return whether an answer has begun, which a second one would corrupt."""
        return self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete

    def _wait(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            _idle.setdefault(self.server_state, {})[self] = None
        self._arm(HEAD_SECONDS)

    def _arm(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._body = 0
        self._timer = self.loop.call_later(seconds, self._too_slow)

    def _go_on(self) -> None:
        _idle.get(self.server_state, {}).pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        self._timer = None
        if self.transport.is_closing():
            return
        if self._in_body:
            if (
                self._body >= BODY_BYTES or self.flow.read_paused
            ):  # data arrives, or the application does not read it
                self._arm(BODY_SECONDS)
                return
        elif self.cycle is not None and not self.cycle.response_complete:
            return  # a pipelined request waits until the previous answer is complete
        self._refuse(Refused(408, "this request took too long to arrive"))

    def _refuse(self, refused: Refused) -> None:
        self._refused = refused
        self._go_on()
        if not self._started():
            body = refused.problem.model_dump_json(exclude_none=True).encode()
            head = b"content-type: %b\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
            self.transport.write(
                STATUS_LINE[refused.problem.status] + head % (KIND.encode(), len(body)) + body
            )
        self.transport.close()


def _check_head(url: bytes, headers: list[tuple[bytes, bytes]], version: str) -> None:
    """Raise Refused if the head is too large, or its host is ambiguous."""
    if len(url) + sum(len(name) + len(value) + 4 for name, value in headers) > HEAD_BYTES:
        raise _too_large()
    hosts = sum(name == b"host" for name, _ in headers)
    if hosts > 1 or (hosts == 0 and version == "1.1"):  # RFC 9112, 3.2
        raise Refused(400, "a request must have exactly one Host header")


def _too_large() -> Refused:
    return Refused(431, f"the head of a request has at most {HEAD_BYTES:,} bytes")


def _answered_at_shutdown(app: App, cycle: RequestResponseCycle) -> Any:
    """Return an application that answers 503 if its task is cancelled. uvicorn cancels the requests that are still under way
    when the grace of a stop has passed. It would log a traceback of each, and answer 500."""

    async def answered(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        try:
            await app(scope, receive, send)
        except asyncio.CancelledError:
            if cycle.response_started:
                cycle.disconnected = True
                cycle.transport.close()
                return
            body = STOPPED.model_dump_json(exclude_none=True).encode()
            headers = [
                (b"content-type", KIND.encode()),
                (b"content-length", b"%d" % len(body)),
                (b"connection", b"close"),
            ]
            await send({"type": "http.response.start", "status": STOPPED.status, "headers": headers})
            await send({"type": "http.response.body", "body": body})

    return answered


def _without_chunks(app: App, cycle: RequestResponseCycle) -> Any:
    """Return an application that answers HTTP/1.0 without chunks: the end of the connection ends an answer of unknown
    length."""

    async def answered(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        endless = False

        async def sent(message: MutableMapping[str, Any]) -> None:
            nonlocal endless
            if message["type"] == "http.response.start":
                endless = all(name.lower() != b"content-length" for name, _ in message.get("headers", ()))
                if endless:
                    cycle.chunked_encoding = False
            elif endless:
                cycle.expected_content_length = len(message.get("body", b""))
            await send(message)

        await app(scope, receive, sent)

    return answered
