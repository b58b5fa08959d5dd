"""The log lines of an attempt, in order and up to a limit."""

from __future__ import annotations

import threading
from collections.abc import Callable

LOG_LIMIT = 1024 * 1024
"""The maximum size of an attempt's log, in bytes."""
LINE_LIMIT = 16 * 1024
"""The length at which an unfinished line is broken, in characters."""
MARKER = "penstock"
"""The stream of Penstock's own messages in the log of a run."""

Sink = Callable[[str, str], None]
"""A function that takes (stream, line). It may be called from any thread, must not block and must not print."""


class RunLog:
    """The log behind `Run.log`, which takes (stream, line). Streams are `stdout`, `stderr`, `log` (the logging module)
    and `penstock`. When `limit` bytes are used up, a marker line is written, and further lines are dropped.

    An unfinished line is broken at LINE_LIMIT. `conceal` masks the secrets in it before, since a mask of each part by
    itself misses a secret at the break. A process that does not know the secrets has `pieces` instead: it passes on the
    parts of an unfinished line, for the `write` of a log that masks."""

    __slots__ = ("_conceal", "_left", "_limit", "_lock", "_partial", "_pieces", "_sink")

    def __init__(
        self,
        sink: Sink,
        limit: int = LOG_LIMIT,
        *,
        conceal: Callable[[str], str] | None = None,
        pieces: Sink | None = None,
    ) -> None:
        self._sink = sink
        self._conceal = conceal
        self._pieces = pieces or sink
        self._limit = self._left = limit
        self._partial: dict[str, str] = {}
        self._lock = threading.Lock()

    @property
    def left(self) -> int:
        """Return the number of bytes that can still be logged."""
        return max(0, self._left)

    @property
    def full(self) -> bool:
        """Return whether further lines are dropped, because the limit is reached or the attempt is over."""
        return self._left < 0

    def __call__(self, stream: str, line: str) -> None:
        """Log a line. A text with newlines becomes several lines."""
        if self._left >= 0:
            with self._lock:
                for part in line.split("\n") if "\n" in line else (line,):
                    self._emit(stream, part)

    def write(self, stream: str, piece: str) -> None:
        """Log a piece of text as `print` writes it. Each line is logged once it ends."""
        if self._left < 0:
            return
        with self._lock:
            *lines, tail = (self._partial.pop(stream, "") + piece).split("\n")
            for line in lines:
                self._emit(stream, line)
            # Keep as much text unwritten as the longest secret has: the end of a secret may not have been printed yet.
            longest = LINE_LIMIT if self._conceal is None else 2 * LINE_LIMIT
            if len(tail) > longest and self._conceal is not None:
                tail = self._conceal(tail)
            while len(tail) > longest:
                self._emit(stream, tail[:LINE_LIMIT], self._pieces)
                tail = tail[LINE_LIMIT:]
            if tail and self._left >= 0:
                self._partial[stream] = tail

    def flush(self) -> None:
        """Log an unfinished line as it is."""
        if self._partial:
            with self._lock:
                partial, self._partial = self._partial, {}
                for stream, tail in partial.items():
                    self._emit(stream, tail)

    def close(self) -> None:
        """Flush at the end of the attempt. Later lines, from threads or tasks that it left behind, are dropped."""
        self.flush()
        with self._lock:  # wait for a thread that is in the middle of writing a line
            self._left = -1

    def _emit(self, stream: str, line: str, sink: Sink | None = None) -> None:
        if self._left < 0:
            return
        # PostgreSQL stores neither NUL nor lone surrogates. ASCII, the ordinary case, is unchanged.
        if not line.isascii():
            line = line.encode("utf-8", "replace").decode()
        if "\0" in line:
            line = line.replace("\0", "\ufffd")
        self._left -= 1 + (len(line) if line.isascii() else len(line.encode()))
        if self._left >= 0:
            (sink or self._sink)(stream, line)
        else:
            self._sink(MARKER, f"the log is capped at {self._limit:,} bytes; the rest is left out")
