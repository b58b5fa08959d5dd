"""Reading what a child process writes, without a thread and without waiting for more than there is."""

from __future__ import annotations

import asyncio
import codecs
import os
from collections.abc import Callable
from contextlib import suppress

_CHUNK = 65536


class PipeReader:
    """Hands what arrives on `fd` to `take`, and owns `fd`."""

    def __init__(self, fd: int, take: Callable[[bytes], None]) -> None:
        os.set_blocking(fd, False)
        self._fd = fd
        self._take = take
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(fd, self._read)

    def _read(self) -> bool:
        with suppress(BlockingIOError):
            if piece := os.read(self._fd, _CHUNK):
                self._take(piece)
                return True
            self._loop.remove_reader(self._fd)  # the end; select would report it for ever
        return False

    def drain(self, at_most: int = 256) -> None:
        """Take what is in the pipe now: what a process that has ended, or said that it is done, had written. Bounded,
        because another process may still write."""
        while self._fd >= 0 and at_most and self._read():
            at_most -= 1

    def close(self) -> None:
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1


class Text:
    """Turns bytes into text for `write`, whole characters at a time; remembers the end of it."""

    def __init__(self, write: Callable[[str], None], keep: int = 4096) -> None:
        self._write = write
        self._keep = keep
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self.last = ""
        """The end of the text: what a program said before it failed."""

    def __call__(self, piece: bytes) -> None:
        text = self._decode(piece)
        self.last = (self.last + text)[-self._keep :]
        self._write(text)


class Tail:
    """Keeps the last `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = bytearray()
        self.cut = False
        """Whether there was more than is kept."""

    def __call__(self, piece: bytes) -> None:
        self._kept += piece
        if len(self._kept) > 2 * self._limit:  # not at every piece: that would copy everything every time
            self._shorten()

    def read(self) -> bytes:
        self._shorten()
        return bytes(self._kept)

    def _shorten(self) -> None:
        if len(self._kept) > self._limit:
            del self._kept[: -self._limit]
            self.cut = True
