"""The process of an API. Any number of identical replicas serve, and none keeps state that another would need."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

import structlog
import uvicorn
from fastapi import FastAPI

from penstock.client.client import Client
from penstock.language.terms.setting_values import networks
from penstock.operate.access import find_work_caller
from penstock.service.assembly import Parts, Stop
from penstock.service.health import serve_health
from penstock.service.ports import listening
from penstock.service.readiness import database_answers
from penstock.service.startup import assembled_when_ready
from penstock.settings import Settings
from penstock_api.app import make_app
from penstock_api.backend import Backend
from penstock_api.requests.connections import BoundedProtocol

log = structlog.get_logger()

GRACE = 5
"""The seconds that requests may go on after a request to stop."""


async def serve(settings: Settings, stop: Stop, listener: socket.socket | None = None) -> None:
    """Serve until `stop` is requested, on this socket or on the port of the settings. Raises ConfigurationError if it
    cannot listen there."""
    # Listen before connecting to the servers, so that a taken port is reported at once.
    with listener or listening(settings.api_host, settings.api_port) as listener:
        async with assembled_when_ready(settings, role="api") as parts:
            await work(parts, listener, stop)


async def serve_gateway(settings: Settings, stop: Stop, listener: socket.socket | None = None) -> None:
    """Serve only the routes of the worker protocol; all else is as in `serve`. A database account with the rights of a
    worker is enough."""
    with listener or listening(settings.api_host, settings.api_port) as listener:
        async with assembled_when_ready(settings, role="gateway") as parts:
            await work(parts, listener, stop, only_work=True)


async def work(parts: Parts, listener: socket.socket, stop: Stop, *, only_work: bool = False) -> None:
    """Serve the API with the given connections, on an open socket."""
    client = Client(parts.settings, parts.database, parts.publisher)
    backend = Backend.of(client)
    if only_work:
        backend.find_caller, backend.audits = find_work_caller, False
    server = _Server(server_config(make_app(backend, only_work=only_work), parts.settings))
    serving = parts.supervisor.start("http", lambda: server.serve(sockets=[listener]))
    health = await serve_health(parts, database_answers(parts))
    if backend.standby is not None:
        parts.metrics.show(gauges={"standby_read": lambda: float(backend.behind is not None)})
        parts.metrics.show(gauges={"standby_behind_seconds": lambda: backend.behind or 0.0})
    host, port = listener.getsockname()[:2]
    log.info("api.started", host=host, port=port, health=health.port, access=parts.settings.api_access)
    stop.began.set()
    try:
        await parts.supervisor.until(stop.requested)
        parts.supervisor.release(serving)
        await backend.end_streams()
        server.should_exit = True
        await serving
        await client.flush()
    finally:
        await parts.supervisor.stop(serving)
        await backend.close()
        await health.close()
        await client.close()
    log.info("api.stopped")


def server_config(app: FastAPI, settings: Settings) -> uvicorn.Config:
    """Return the configuration of the server: bounds on its connections, and the trusted proxies of the settings."""
    return uvicorn.Config(
        app,
        http=BoundedProtocol,
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=[str(network) for network in networks(settings.trusted_proxies)],
        lifespan="off",
        timeout_graceful_shutdown=GRACE,
    )


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the process, which turns them into `stop`."""
        yield
