"""A gateway of a test: an HTTP server that notes each call, and answers as the test says."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]


@dataclass
class StubGateway:
    """The calls so far, as name and message. `answers` has a function for each name that is called in a thread."""

    answers: Mapping[str, Callable[[Json], Json]]
    calls: list[tuple[str, Json]] = field(default_factory=list)
    address: str = ""

    def messages(self, name: str) -> list[Json]:
        return [message for called, message in self.calls if called == name]


@contextmanager
def stub_gateway(**answers: Callable[[Json], Json]) -> Iterator[StubGateway]:
    """Serve on loopback until the end of the block."""
    stub = StubGateway(answers)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            name = self.path.rpartition("/")[2]
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            stub.calls.append((name, message))
            body = json.dumps(stub.answers[name](message)).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads, server.block_on_close = True, False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    stub.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield stub
    finally:
        server.shutdown()
        server.server_close()
