"""A link between a worker and its database, which a case can cut."""

from __future__ import annotations

import asyncio
import contextlib
from urllib.parse import parse_qs, urlsplit, urlunsplit

READ_BYTES = 65_536


class DatabaseLink:
    """A port of the loopback address that passes bytes to and from the database of `address`."""

    def __init__(self, address: str) -> None:
        self._address = urlsplit(address)
        self._is_cut = False
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def open(self) -> str:
        """Listen on a free port. Return the address of the database by way of this link."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        user, at, _ = self._address.netloc.rpartition("@")
        port = self._server.sockets[0].getsockname()[1]
        return urlunsplit(self._address._replace(netloc=f"{user}{at}127.0.0.1:{port}", query=""))

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        self.cut()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def cut(self) -> None:
        """Close all connections, and refuse others until `mend`."""
        self._is_cut = True
        for task in self._connections:
            task.cancel()

    def mend(self) -> None:
        self._is_cut = False

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        writers = [writer]
        try:
            if not self._is_cut:
                its_reader, its_writer = await self._connect()
                writers.append(its_writer)
                async with asyncio.TaskGroup() as directions:
                    directions.create_task(_pass_on(reader, its_writer))
                    directions.create_task(_pass_on(its_reader, writer))
        except (OSError, ExceptionGroup, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(task)
            for open_writer in writers:
                with contextlib.suppress(Exception):
                    open_writer.transport.abort()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        options = parse_qs(self._address.query)
        if "host" in options:
            return await asyncio.open_unix_connection(f"{options['host'][0]}/.s.PGSQL.{options['port'][0]}")
        return await asyncio.open_connection(self._address.hostname, self._address.port)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy bytes until the sender closes its side. Raises ConnectionError then, so that the other direction ends, too."""
    while content := await reader.read(READ_BYTES):
        writer.write(content)
        await writer.drain()
    raise ConnectionError("the connection was closed")
