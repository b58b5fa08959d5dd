"""The deeds of tests on a broker of their own behind its clients' backs."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from urllib.parse import quote, urlsplit

import pika
from pika.adapters.blocking_connection import BlockingChannel

from tests.servers.rabbitmq import DockerRabbitMQ, NativeRabbitMQ, RabbitMQ


def api(server: RabbitMQ, method: str, path: str, body: object = None) -> Any:
    assert isinstance(server, NativeRabbitMQ | DockerRabbitMQ)
    return server.api.call(method, path, body)


def add_user(server: RabbitMQ, name: str, vhost: str, *, configure: str, use: str = ".*") -> str:
    """Add a user that may configure names that match, and write to and read names that match `use`. Returns the
    address."""
    api(server, "PUT", f"users/{name}", {"password": "secret", "tags": ""})
    api(
        server,
        "PUT",
        f"permissions/{quote(vhost, safe='')}/{name}",
        {"configure": configure, "write": use, "read": use},
    )
    address = urlsplit(server.url(vhost))
    return address._replace(netloc=f"{name}:secret@{address.hostname}:{address.port}").geturl()


def drop_connections(server: RabbitMQ, name: str) -> int:
    """Close, from the broker's side, the connections of the client `name`; says how many there were."""
    mine = [
        connection["name"]
        for connection in api(server, "GET", "connections")
        if connection.get("client_properties", {}).get("connection_name", "").startswith(name)
    ]
    for connection in mine:
        api(server, "DELETE", f"connections/{quote(connection, safe='')}")
    return len(mine)


@asynccontextmanager
async def short_of_memory(server: RabbitMQ) -> AsyncIterator[None]:
    """Let the broker block all publishers. The event loop goes on meanwhile: connections without heartbeats are cut."""
    await asyncio.to_thread(_ctl, server, "set_vm_memory_high_watermark", "absolute", "1000000")
    try:
        yield
    finally:
        await asyncio.to_thread(_ctl, server, "set_vm_memory_high_watermark", "0.4")


@contextmanager
def plain_pika(url: str) -> Iterator[BlockingChannel]:
    """A channel of a client that knows nothing of Penstock. It waits for confirms: what has none may be lost with the channel."""
    connection = pika.BlockingConnection(pika.URLParameters(url))
    try:
        channel = connection.channel()
        channel.confirm_delivery()
        yield channel
    finally:
        connection.close()


def _ctl(server: RabbitMQ, *arguments: str) -> None:
    if isinstance(server, DockerRabbitMQ):
        server._container._inner.exec_run(["rabbitmqctl", *arguments])
        return
    assert isinstance(server, NativeRabbitMQ)
    subprocess.run(
        [server._script.parent / "rabbitmqctl", *arguments],
        env=server._env,
        check=True,
        capture_output=True,
        timeout=60,
    )
