"""The network between a machine and a server: a TCP proxy that can cut, hold back, slow down and lose what passes."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable
from typing import Literal, Protocol

Direction = Literal["up", "down"]
"""up: from the machine to the server; down: back."""
Verdict = Literal["pass", "drop", "reset"]
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER that makes a close a reset."""


class Watch(Protocol):
    """Sees what passes on one connection, piece by piece, and says what becomes of each piece, and of the connection."""

    def sees(self, direction: Direction, data: bytes) -> Verdict: ...


class Proxy:
    """Listens on a port of its own and passes on what comes, to a port of 127.0.0.1 and back. `watch` makes one for each
    connection."""

    def __init__(self, target: int, watch: Callable[[], Watch] | None = None) -> None:
        self._target = target
        self._watch = watch
        self._server: asyncio.Server
        self._passing: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._open = {"up": asyncio.Event(), "down": asyncio.Event()}
        self._refusing = False
        self._delay = 0.0
        self.heal()

    async def __aenter__(self) -> Proxy:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.cut()
        for task in list(self._passing):
            task.cancel()
        await asyncio.gather(*self._passing, return_exceptions=True)

    @property
    def connections(self) -> int:
        """Count the connections that pass through it now."""
        return len(self._passing)

    def lead_to(self, target: int) -> None:
        """Pass on new connections to another port."""
        self._target = target

    def cut(self) -> None:
        """Reset every connection, and refuse new ones until healed."""
        self._refusing = True
        for writer in list(self._writers):
            _reset(writer)

    def hold(self, *directions: Direction) -> None:
        """A partition: what goes this way arrives when it is healed, and not before. So does the word that an end has closed."""
        for direction in directions:
            self._open[direction].clear()

    def slow(self, seconds: float) -> None:
        """Every piece that passes takes so long."""
        self._delay = seconds

    def heal(self) -> None:
        self._refusing, self._delay = False, 0.0
        for gate in self._open.values():
            gate.set()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._passing.add(task)
        self._writers.add(writer)
        server: asyncio.StreamWriter | None = None
        try:
            if self._refusing:
                return
            for gate in self._open.values():  # a connection is heard, and answered, or not let in
                await gate.wait()
            watch = self._watch() if self._watch is not None else None
            answers, server = await asyncio.open_connection("127.0.0.1", self._target)
            self._writers.add(server)
            ways = {
                asyncio.ensure_future(self._pass_on(reader, server, "up", watch)),
                asyncio.ensure_future(self._pass_on(answers, writer, "down", watch)),
            }
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            for end in (writer, server):
                if end is not None:
                    self._writers.discard(end)
                    _reset(end)
            self._passing.discard(task)

    async def _pass_on(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        direction: Direction,
        watch: Watch | None,
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                verdict = watch.sees(direction, data) if watch is not None else "pass"
                if verdict == "reset":
                    return
                if verdict == "drop":
                    continue
                if self._delay:
                    await asyncio.sleep(self._delay)
                await self._open[direction].wait()
                writer.write(data)
                await writer.drain()
        await self._open[direction].wait()


def _reset(writer: asyncio.StreamWriter) -> None:
    sock = writer.get_extra_info("socket")
    with contextlib.suppress(OSError):
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()
