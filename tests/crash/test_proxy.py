"""The proxy that chaos breaks the network with does what it says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.chaos.proxy import Proxy


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            writer.write(data.upper())
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with server, Proxy(server.sockets[0].getsockname()[1]) as proxy:
        yield proxy


class Caller:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def to(cls, proxy: Proxy) -> Caller:
        return cls(*await asyncio.open_connection("127.0.0.1", proxy.port))

    async def ask(self, text: bytes) -> bytes:
        self.writer.write(text)
        return await self.reader.read(100)


async def test_what_comes_is_passed_on_and_back(proxy: Proxy) -> None:
    assert await (await Caller.to(proxy)).ask(b"hello") == b"HELLO"


@pytest.mark.parametrize("direction", ["up", "down"])
async def test_what_is_held_arrives_once_it_is_healed(proxy: Proxy, direction: str) -> None:
    caller = await Caller.to(proxy)
    await caller.ask(b"first")
    proxy.hold(direction)  # type: ignore[arg-type]
    asked = asyncio.create_task(caller.ask(b"second"))
    done, _ = await asyncio.wait({asked}, timeout=0.1)
    assert not done
    proxy.heal()
    assert await asked == b"SECOND"


async def test_a_cut_resets_connections_and_refuses_new_ones_until_it_is_healed(proxy: Proxy) -> None:
    caller = await Caller.to(proxy)
    await caller.ask(b"first")
    proxy.cut()
    with pytest.raises(ConnectionError):
        await caller.ask(b"second")
    with pytest.raises(ConnectionError):
        assert await (await Caller.to(proxy)).ask(b"third")
    proxy.heal()
    assert await (await Caller.to(proxy)).ask(b"fourth") == b"FOURTH"
