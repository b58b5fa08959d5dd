"""How a service says that it lives: /live, /ready and /metrics on a port of its own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from penstock.consumer import Tally
from penstock.settings import Settings
from penstock.transports import Transport


@dataclass(slots=True)
class Observed:
    """What of a service is shown. `gauges` are read when somebody asks."""

    service: str
    transport: Transport
    tallies: Mapping[str, Tally] = field(default_factory=dict)
    gauges: Mapping[str, Callable[[], float]] = field(default_factory=dict)
    live: Callable[[], bool] = lambda: True


class _Collected(Collector):
    """Reads the tallies that the service keeps anyway: observing costs the hot path nothing."""

    def __init__(self, observed: Observed) -> None:
        self._observed = observed

    def collect(self) -> Iterable[Metric]:
        labels = ["service", "queue"]
        kinds = {
            "batches": CounterMetricFamily("penstock_batches", "Transactions of handlers", labels=labels),
            "items": CounterMetricFamily("penstock_items", "Items handled", labels=labels),
            "dead": CounterMetricFamily("penstock_dead_letters", "Messages given up on", labels=labels),
            "retried": CounterMetricFamily("penstock_retries", "Batches tried again", labels=labels),
        }
        for queue, tally in self._observed.tallies.items():
            for name, family in kinds.items():
                family.add_metric([self._observed.service, queue], getattr(tally, name))
        yield from kinds.values()
        for name, read in self._observed.gauges.items():
            gauge = GaugeMetricFamily(f"penstock_{name}", name.replace("_", " "), labels=["service"])
            gauge.add_metric([self._observed.service], read())
            yield gauge
        healthy = GaugeMetricFamily(
            "penstock_ready", "1 while messages are really consumed", labels=["service"]
        )
        healthy.add_metric([self._observed.service], float(self._observed.transport.healthy))
        yield healthy


class Health:
    """The port. `close` when the service ends."""

    def __init__(self, server: asyncio.Server) -> None:
        self._server = server
        self.port: int = server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        self._server.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1):
                await self._server.wait_closed()


async def serve_health(settings: Settings, observed: Observed) -> Health:
    """Listen on `settings.host:settings.port` (port 0: a free one)."""
    registry = CollectorRegistry()
    registry.register(_Collected(observed))

    def respond(path: str) -> tuple[str, str, bytes]:
        if path == "/live":
            return ("200 OK", "text/plain", b"live\n") if observed.live() else _unwell(b"not live\n")
        if path == "/ready":
            return (
                ("200 OK", "text/plain", b"ready\n")
                if observed.transport.healthy
                else _unwell(b"not consuming\n")
            )
        if path == "/metrics":
            return "200 OK", "text/plain; version=0.0.4", generate_latest(registry)
        return "404 Not Found", "text/plain", b"try /live, /ready or /metrics\n"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ValueError, TimeoutError, asyncio.IncompleteReadError):
            async with asyncio.timeout(5):
                request = (await reader.readline()).decode("latin-1").split()
                while (await reader.readline()).strip():
                    pass
                path = request[1].split("?", 1)[0] if len(request) > 1 else ""
                status, kind, body = respond(path)
                head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
                writer.write(head.encode() + body)
                await writer.drain()
        writer.close()

    return Health(await asyncio.start_server(answer, settings.host, settings.port, limit=8192))


def _unwell(body: bytes) -> tuple[str, str, bytes]:
    return "503 Service Unavailable", "text/plain", body
