"""The printed and logged lines of actions. The lines are written in batches, outside of the attempts."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence

from penstock.attempts.owned_attempt import OwnedAttempt
from penstock.store.executions.log_lines import NewLine

BATCH = 1000
"""The maximum number of lines in one write."""

Write = Callable[[Sequence[NewLine]], Awaitable[None]]
"""A function that stores lines."""


class RunLogs:
    """The writer of log lines. The writer takes lines from any thread, and a task writes them a few times a second."""

    def __init__(self, write: Write, *, every: float = 0.25) -> None:
        self._write = write
        self._every = every
        self._lines: list[NewLine] = []
        self._lock = threading.Lock()
        self._seq = 0
        self._loop = asyncio.get_running_loop()
        self._arrived = asyncio.Event()
        self._turn = asyncio.Lock()

    def add(self, attempt: OwnedAttempt, stream: str, line: str) -> None:
        event = attempt.event
        with self._lock:
            self._seq += 1
            self._lines.append(
                NewLine(
                    event.execution_id,
                    event.attempt,
                    self._seq,
                    stream,
                    line.replace("\0", "�"),
                    time.monotonic(),
                )
            )
            first = len(self._lines) == 1
        if first:
            self._loop.call_soon_threadsafe(self._arrived.set)

    async def run(self) -> None:
        while True:
            await self._arrived.wait()
            await asyncio.sleep(self._every)
            self._arrived.clear()
            await self.flush()

    async def flush(self) -> None:
        """Write the lines that have arrived. Return once they are stored."""
        async with self._turn:
            with self._lock:
                lines, self._lines = self._lines, []
            for start in range(0, len(lines), BATCH):
                await self._write(lines[start : start + BATCH])
