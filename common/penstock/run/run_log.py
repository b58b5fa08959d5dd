"""The lines that an attempt logs, in order and capped."""

from __future__ import annotations

import threading
from collections.abc import Callable

LOG_LIMIT = 1024 * 1024
"""Bytes of log that one attempt may keep."""
LINE_LIMIT = 16 * 1024
"""Characters after which a line that has not ended is broken."""
MARKER = "penstock"
"""The stream of what Penstock itself has to say among the lines of a run."""

Sink = Callable[[str, str], None]
"""Takes (stream, line). May be called from any thread; must be quick, must not block and must not print."""


class RunLog:
    """The protocol of `Run.log`: a call takes (stream, line). Streams: `stdout`, `stderr`, `log` (the logging
    module), `penstock`. When `limit` bytes are used up a marker says so, and what follows is dropped."""

    __slots__ = ("_left", "_limit", "_lock", "_partial", "_sink")

    def __init__(self, sink: Sink, limit: int = LOG_LIMIT) -> None:
        self._sink = sink
        self._limit = self._left = limit
        self._partial: dict[str, str] = {}
        self._lock = threading.Lock()

    @property
    def left(self) -> int:
        """Bytes that will still be kept."""
        return max(0, self._left)

    @property
    def full(self) -> bool:
        """True when nothing more will be kept, because of the limit or because the attempt is over."""
        return self._left < 0

    def __call__(self, stream: str, line: str) -> None:
        """Log a line; text with newlines becomes several."""
        if self._left >= 0:
            with self._lock:
                for part in line.split("\n") if "\n" in line else (line,):
                    self._emit(stream, part)

    def write(self, stream: str, piece: str) -> None:
        """Log a piece of text as `print` writes it: lines are logged as they end."""
        if self._left < 0:
            return
        with self._lock:
            *lines, tail = (self._partial.pop(stream, "") + piece).split("\n")
            for line in lines:
                self._emit(stream, line)
            while len(tail) > LINE_LIMIT:
                self._emit(stream, tail[:LINE_LIMIT])
                tail = tail[LINE_LIMIT:]
            if tail and self._left >= 0:
                self._partial[stream] = tail

    def flush(self) -> None:
        """Log what was written without a newline at its end."""
        if self._partial:
            with self._lock:
                partial, self._partial = self._partial, {}
                for stream, tail in partial.items():
                    self._emit(stream, tail)

    def close(self) -> None:
        """The attempt is over: flush, then drop whatever its leftovers (threads, tasks) still say."""
        self.flush()
        with self._lock:  # a thread that is writing a line finishes it first
            self._left = -1

    def _emit(self, stream: str, line: str) -> None:
        if self._left < 0:
            return
        # PostgreSQL takes neither NUL nor lone surrogates; plain text, the ordinary case, passes untouched.
        if not line.isascii():
            line = line.encode("utf-8", "replace").decode()
        if "\0" in line:
            line = line.replace("\0", "\ufffd")
        self._left -= 1 + (len(line) if line.isascii() else len(line.encode()))
        if self._left >= 0:
            self._sink(stream, line)
        else:
            self._sink(MARKER, f"the log is capped at {self._limit:,} bytes; the rest is left out")
