"""A collector of OpenTelemetry traces on loopback: takes OTLP over HTTP as protobuf, and keeps the spans."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True, slots=True)
class Received:
    """A span as a backend sees it. Ids are hexadecimal, as they are written; `parent` is '' for a root."""

    name: str
    trace: str
    id: str
    parent: str
    kind: int
    began: int
    ended: int
    failed: bool
    said: str
    attributes: dict[str, Any]
    links: list[str] = field(default_factory=list)


class Collector:
    def __init__(self, url: str) -> None:
        self.url = url
        self.spans: list[Received] = []

    def named(self, name: str) -> list[Received]:
        return [span for span in self.spans if span.name == name]

    def one(self, name: str) -> Received:
        [span] = self.named(name)
        return span

    def take(self, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                self.spans += [_received(span) for span in scope.spans]


def _received(span: Any) -> Received:
    return Received(
        span.name,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        span.kind,
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        span.status.code == 2,
        span.status.message,
        {
            attribute.key: getattr(attribute.value, attribute.value.WhichOneof("value"))
            for attribute in span.attributes
        },
        [link.span_id.hex() for link in span.links],
    )


@contextmanager
def collector() -> Iterator[Collector]:
    """One that listens until the end of the block, at `url`/v1/traces."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            spans.take(gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body)
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Tests are quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    spans = Collector(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield spans
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
