"""The proxy that chaos breaks the network with does what it says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from tests.chaos.answers import STATEMENTS, Answers, Statements
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


async def test_bytes_are_passed_on_and_back(proxy: Proxy) -> None:
    assert await (await Caller.to(proxy)).ask(b"hello") == b"HELLO"


@pytest.mark.parametrize("direction", ["up", "down"])
async def test_held_bytes_arrive_once_the_proxy_is_healed(proxy: Proxy, direction: str) -> None:
    caller = await Caller.to(proxy)
    await caller.ask(b"first")
    proxy.hold(direction)  # type: ignore[arg-type]
    question = asyncio.create_task(caller.ask(b"second"))
    done, _ = await asyncio.wait({question}, timeout=0.1)
    assert not done
    proxy.heal()
    assert await question == b"SECOND"


async def test_a_parted_server_hears_of_the_close_only_once_healed() -> None:
    connected, gone = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connected.set()
        with suppress(ConnectionResetError):  # a proxy ends what it passed on with a reset
            await reader.read()
        gone.set()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, Proxy(server.sockets[0].getsockname()[1]) as proxy:
        caller = await Caller.to(proxy)
        await connected.wait()
        proxy.hold("up", "down")
        caller.writer.close()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await gone.wait()
        proxy.heal()
        await gone.wait()


async def test_a_call_through_a_partition_arrives_once_it_is_healed(proxy: Proxy) -> None:
    proxy.hold("down")
    question = asyncio.create_task((await Caller.to(proxy)).ask(b"first"))
    done, _ = await asyncio.wait({question}, timeout=0.1)
    assert not done
    proxy.heal()
    assert await question == b"FIRST"


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


async def test_an_answer_that_is_lost_is_one_to_a_statement_that_is_committed(database: str) -> None:
    answers, parts = Answers(Statements, STATEMENTS), urlsplit(database)
    async with Proxy(parts.port or 0, answers.watch) as proxy:
        through = parts._replace(netloc=f"{parts.netloc.rpartition(':')[0]}:{proxy.port}")
        first, other = [await asyncpg.connect(urlunsplit(through)) for _ in range(2)]
        await first.execute("create table told (n integer)")
        losing = asyncio.create_task(answers.lose(b"insert into told", patience=10))
        await asyncio.sleep(0)
        assert await first.fetchval("select count(*) from told where n > $1", 0) == 0
        with pytest.raises((OSError, asyncpg.InterfaceError, asyncpg.PostgresConnectionError)):
            await first.fetch("insert into told select generate_series(1, $1) returning n", 20_000)
        assert await losing
        assert await other.fetchval("select count(*) from told where n > $1", 0) == 20_000
        await other.execute("insert into told values (1)")
        await other.close()
    assert not await answers.lose(b"insert into told", patience=0.01)
