"""The reading of a child process's output, without a thread, and without blocking."""

from __future__ import annotations

import asyncio
import codecs
import os
from collections.abc import Callable
from contextlib import suppress

from penstock.run.cut_texts import ELLIPSIS

_CHUNK = 65536


class PipeReader:
    """A reader that passes the data of `fd` to `take`, and owns `fd`."""

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
            self._loop.remove_reader(self._fd)  # the end of the pipe, which select would report for ever
        return False

    def drain(self, at_most: int = 256) -> None:
        """Read the data that is in the pipe now, which a process wrote before it ended or reported its end. Bounded,
        as another process may go on writing."""
        while self._fd >= 0 and at_most and self._read():
            at_most -= 1

    def close(self) -> None:
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1


class Text:
    """A decoder that passes bytes as text to `write`, in whole characters, and keeps the end of the text."""

    def __init__(self, write: Callable[[str], None], keep: int = 4096) -> None:
        self._write = write
        self._keep = keep
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._end = ""
        self._is_cut = False

    @property
    def last(self) -> str:
        """Return the end of the text, which has the last message of a failed program."""
        return ELLIPSIS + self._end if self._is_cut else self._end

    def __call__(self, piece: bytes) -> None:
        text = self._decode(piece)
        whole = self._end + text
        self._end = whole[-self._keep :]
        self._is_cut |= len(whole) > self._keep
        self._write(text)


class Tail:
    """A buffer of the last `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = bytearray()
        self.cut = False
        """True if earlier bytes were dropped."""

    def __call__(self, piece: bytes) -> None:
        self._kept += piece
        if len(self._kept) > 2 * self._limit:  # not at every piece, which would copy the buffer each time
            self._shorten()

    def read(self) -> bytes:
        self._shorten()
        return bytes(self._kept)

    def _shorten(self) -> None:
        if len(self._kept) > self._limit:
            del self._kept[: -self._limit]
            self.cut = True
