"""A proxy between a replica and its broker that is worse than no broker: it accepts connections and then closes or
resets them, or lets them hang, after any frame of AMQP that passed in either direction.

A load balancer without a backend accepts and closes; a firewall that forgets a connection lets it hang; a broker that
dies resets. `cut` does one of these to every connection that is there and to every one that comes, until `heal`. With
`instead` it passes on other frames than came.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

How = Literal["close", "reset", "hang"]
Direction = Literal["up", "down"]
"""up: from the client to the broker; down: back."""
Instead = Callable[[int, Direction, bytes], bytes]
"""Of the how manieth connection a frame is, which way it goes, the frame, and what is passed on in its place, if anything."""
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER that makes a close a reset."""
GREETING = 8
"""Bytes of the protocol header that a client sends before its first frame."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The fate of a connection once `frames` frames have passed in `direction`. 0 down: it is accepted, and that is all. The
    greeting of the client counts as its first frame; 3 down is a connection, 4 down an open channel."""

    how: How
    frames: int = 0
    direction: Direction = "down"


def every_cut(down: int = 12, up: int = 10) -> Iterator[Cut]:
    """All kinds, at each of so many frames: the handshake, a channel, and what is declared on it."""
    hows: tuple[How, ...] = ("close", "reset", "hang")
    for how in hows:
        for frames in range(down + 1):
            yield Cut(how, frames)
        for frames in range(1, up + 1):
            yield Cut(how, frames, "up")


class HostileProxy:
    """Listens on a port of its own (`port`) and passes on what comes to a port of 127.0.0.1, and back; in a thread of its
    own, so that it is as quick as another process: what it sends and the end are read together then."""

    def __init__(self, target: int, instead: Instead | None = None) -> None:
        self._target = target
        self._instead = instead
        self._numbers = itertools.count()
        self._cut: Cut | None = None
        self._passing: set[asyncio.Task[None]] = set()
        self._sockets: set[asyncio.StreamWriter] = set()
        self._loop: asyncio.AbstractEventLoop
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._serving = threading.Event()
        self._ended = asyncio.Event()
        self.port: int = self._listener.getsockname()[1]
        self.struck = 0
        """Connections that came to the frame at which they were cut."""

    def __enter__(self) -> HostileProxy:
        self._thread.start()
        self._serving.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()

    def address(self, url: str) -> str:
        """This address of the broker, by way of the proxy."""
        parts = urlsplit(url)
        user = parts.netloc.rpartition("@")[0]
        return parts._replace(netloc=f"{user}@127.0.0.1:{self.port}").geturl()

    def cut(self, cut: Cut) -> None:
        """Reset what is there, and do this to whatever comes."""
        self._cut = cut
        self.drop()

    def drop(self) -> None:
        """Reset what is there. What comes is treated as before."""
        self._loop.call_soon_threadsafe(self._drop)

    def heal(self) -> None:
        """Pass on what comes. A hanging connection goes on to hang: the client does not hear of it."""
        self._cut = None

    def _drop(self) -> None:
        for writer in list(self._sockets):
            _reset(writer)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._serving.set()
        async with await asyncio.start_server(self._connected, sock=self._listener):
            await self._ended.wait()
            for task in list(self._passing):
                task.cancel()
            await asyncio.gather(*self._passing, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._passing.add(task)
        self._sockets.add(writer)
        server: asyncio.StreamWriter | None = None
        cut, number = self._cut, next(self._numbers)
        try:
            if cut is not None and cut.frames == 0:
                return await self._strike(cut, reader, writer)
            answers, server = await asyncio.open_connection("127.0.0.1", self._target)
            self._sockets.add(server)
            passing = [
                asyncio.ensure_future(self._pass_on(number, "up", reader, server, cut)),
                asyncio.ensure_future(self._pass_on(number, "down", answers, writer, cut)),
            ]
            try:
                done, _ = await asyncio.wait(passing, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for passage in passing:
                    passage.cancel()
                await asyncio.gather(*passing, return_exceptions=True)
            if cut is not None and any(passage.result() for passage in done):
                await self._strike(cut, reader, writer)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            for end in (writer, server):
                if end is not None:
                    self._sockets.discard(end)
                    _reset(end)
            self._passing.discard(task)

    async def _pass_on(
        self,
        number: int,
        way: Direction,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        cut: Cut | None,
    ) -> bool:
        """Until one side is gone (False), or the frames of `cut` have passed (True)."""
        greeting = GREETING if way == "up" else 0
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            if cut is not None and cut.direction == way:
                for passed in range(cut.frames):
                    first = greeting and not passed
                    writer.write(await (reader.readexactly(greeting) if first else _frame(reader)))
                if cut.how == "close" and not greeting:
                    writer.write_eof()  # in one go with the last frame: they are read together
                return True
            if self._instead is not None:
                writer.write(await reader.readexactly(greeting))
                while True:
                    writer.write(self._instead(number, way, await _frame(reader)))
                    await writer.drain()
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        return False

    async def _strike(self, cut: Cut, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.struck += 1
        if cut.how == "close":
            with contextlib.suppress(OSError, RuntimeError):
                writer.write_eof()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1):  # until the other side has seen it: what follows is a reset
                    await _swallow(reader)
        if cut.how == "hang":
            await _swallow(reader)


async def _swallow(reader: asyncio.StreamReader) -> None:
    while await reader.read(65536):
        pass


async def _frame(reader: asyncio.StreamReader) -> bytes:
    """One frame of AMQP: a byte of type, two of channel, four of length, the payload, and its end."""
    head = await reader.readexactly(7)
    return head + await reader.readexactly(int.from_bytes(head[3:]) + 1)


def _reset(writer: asyncio.StreamWriter) -> None:
    sock = writer.get_extra_info("socket")
    with contextlib.suppress(OSError, ValueError):  # one that is closed has no number any more
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()
