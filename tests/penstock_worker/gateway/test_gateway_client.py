"""The proxies through which a worker reaches its gateways."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from penstock_worker.gateway.gateway_client import GatewayClient, environment_proxy


@contextmanager
def proxy() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Serve a proxy that answers by itself. Yield its address, and the requests: the URL and the credentials of each."""
    requests: list[tuple[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            requests.append((self.path, self.headers.get("proxy-authorization", "")))
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, format: str, *args: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        server.server_close()


async def test_calls_go_through_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with proxy() as (address, requests):
        monkeypatch.setenv("http_proxy", f"http://site:secret@{address}")
        monkeypatch.setenv("no_proxy", "inside.example")
        client = GatewayClient(["http://gateway.example:8000"], "token")
        try:
            assert await client.call("beat", {}) == {}
        finally:
            await client.close()
        assert requests == [("http://gateway.example:8000/api/v1/work/beat", "Basic c2l0ZTpzZWNyZXQ=")]


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ("https://gateway.example", "http://secure:1"),
        ("http://gateway.example", "http://plain:1"),
        ("http://inside.example:8000", None),
        ("https://deep.inside.example", None),
    ],
)
def test_proxy_of_an_address(monkeypatch: pytest.MonkeyPatch, server: str, expected: str | None) -> None:
    monkeypatch.setenv("http_proxy", "http://plain:1")
    monkeypatch.setenv("https_proxy", "http://secure:1")
    monkeypatch.setenv("no_proxy", "inside.example")
    assert environment_proxy(server) == expected
