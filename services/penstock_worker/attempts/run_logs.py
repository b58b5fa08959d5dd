"""The printed and logged lines of actions, stored by attempt and worker. They are written in batches, outside of the
attempts."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from uuid import UUID

from penstock.attempts.owned_attempt import OwnedAttempt
from penstock.store.executions import log_lines
from penstock.store.executions.log_lines import NewLine
from penstock.store.session.database import Session, backoff

BATCH = 1000
"""The maximum number of lines in one statement."""


class RunLogs:
    """The writer of log lines. It takes them from any thread, and a task writes them a few times a second."""

    def __init__(self, session: Session, worker: UUID, name: str, *, every: float = 0.25) -> None:
        self._session = session
        self._worker = worker
        self._name = name
        self._every = every
        self._lines: list[NewLine] = []
        self._lock = threading.Lock()
        self._seq = 0
        self._loop = asyncio.get_running_loop()
        self._arrived = asyncio.Event()

    def add(self, attempt: OwnedAttempt, stream: str, line: str) -> None:
        event = attempt.event
        with self._lock:
            self._seq += 1
            self._lines.append(
                NewLine(event.execution_id, event.attempt, self._seq, stream, line.replace("\0", "�"))
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
        """Write the lines that have arrived."""
        with self._lock:
            lines, self._lines = self._lines, []
        for start in range(0, len(lines), BATCH):
            await self._write(lines[start : start + BATCH])

    async def _write(self, lines: Sequence[NewLine]) -> None:
        async for attempt in backoff(deadline=60):
            with attempt:
                await log_lines.store(self._session, lines, self._worker, self._name)
