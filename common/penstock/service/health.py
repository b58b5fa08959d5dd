"""The health of a service: /live, /ready and /metrics on a port of its own. h11 implements HTTP."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from http import HTTPStatus

import h11
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from penstock.language.terms.setting_values import LOOPBACK, host_name
from penstock.messaging.metrics import Metrics
from penstock.messaging.supervision import Supervisor
from penstock.service.assembly import Parts
from penstock.service.ports import refused
from penstock.service.readiness import Readiness, consumption
from penstock.settings import Settings

PATIENCE = 5.0
"""Seconds for a request to arrive, and for its answer to be sent."""
METHODS = (b"GET", b"HEAD")
Answer = tuple[int, str, bytes]
"""The status, the content type, and the body."""


class Health:
    """The open port. Call `close` when the service ends."""

    def __init__(self, server: asyncio.Server) -> None:
        self._server = server
        self.port: int = server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        self._server.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1):
                await self._server.wait_closed()


async def serve_health(parts: Parts, readiness: Readiness | None = None) -> Health:
    """Listen for a service with a database. By default it is ready while it consumes."""
    usage = parts.database.usage
    parts.metrics.show(
        gauges={
            "database_connections": lambda: usage.open,
            "database_connections_used": lambda: usage.used,
            "database_waiting": lambda: usage.waiting,
        }
    )
    return await listen(parts.settings, parts.supervisor, parts.metrics, readiness or consumption(parts))


async def listen(settings: Settings, supervisor: Supervisor, metrics: Metrics, unready: Readiness) -> Health:
    """Listen on `settings.host:settings.port` (port 0: a free one)."""
    is_ready = True

    async def respond(path: str) -> Answer:
        nonlocal is_ready
        if path == "/live":
            failure = supervisor.failure
            return _text(200, "live") if failure is None else _text(503, failure.message)
        if path == "/ready":
            reason = await unready()
            return _text(200, "ready") if reason is None else _text(503, reason)
        if path == "/metrics":
            is_ready = await unready() is None
            return 200, CONTENT_TYPE_LATEST, generate_latest(metrics.registry)
        return _text(404, "try /live, /ready or /metrics")

    async def respond_to(path: str, name: str) -> Answer:
        # On a loopback address, a request for any other host name comes from a web page with a name that was pointed at
        # this port (DNS rebinding).
        if settings.host in LOOPBACK and host_name(name) not in (None, *LOOPBACK):
            return _text(421, "this port answers only to names of this machine")
        return await respond(path)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                await _serve(reader, writer, respond_to)
        except (OSError, TimeoutError):
            pass  # the client is gone, or sends nothing
        finally:
            writer.close()

    metrics.show(gauges={"ready": lambda: float(is_ready)})
    host, port = settings.host, settings.port
    try:
        return Health(await asyncio.start_server(serve, host, port))
    except OSError as error:
        raise refused(host, port, error, "PENSTOCK_PORT") from None


async def _serve(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    respond: Callable[[str, str], Awaitable[Answer]],
) -> None:
    """Answer one request, and end the connection."""
    connection = h11.Connection(h11.SERVER)
    bodiless, allow = False, []
    try:
        while (event := connection.next_event()) is h11.NEED_DATA:
            connection.receive_data(await reader.read(4096))
    except h11.RemoteProtocolError as error:
        status, kind, body = _text(error.error_status_hint, "this is not an HTTP request")
    else:
        if not isinstance(event, h11.Request):  # closed without a request
            return
        bodiless = event.method == b"HEAD"
        if event.method in METHODS:
            host = next((value.decode("latin-1") for name, value in event.headers if name == b"host"), "")
            status, kind, body = await respond(event.target.decode("latin-1").split("?", 1)[0], host)
        else:
            status, kind, body = _text(405, "only GET and HEAD")
            allow = [("allow", "GET, HEAD")]
    headers = [("content-type", kind), ("content-length", str(len(body))), ("connection", "close"), *allow]
    answer = h11.Response(status_code=status, headers=headers, reason=HTTPStatus(status).phrase)
    for part in (answer, h11.Data(b"" if bodiless else body), h11.EndOfMessage()):
        writer.write(connection.send(part) or b"")
    await writer.drain()


def _text(status: int, words: str) -> Answer:
    return status, "text/plain", words.encode() + b"\n"
