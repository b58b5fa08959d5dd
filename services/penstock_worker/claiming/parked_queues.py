"""The queues of a worker that may have parked work for it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection


class ParkedQueues:
    """The signal to look for parked work. The signal is set when work was parked, or when the worker has room again.
    `queues` are the queues that this worker consumes now."""

    def __init__(self, queues: Collection[str]) -> None:
        self.queues = queues
        self.waits = False
        """Whether something may be parked for which there was no room."""
        self.look = asyncio.Event()

    def parked(self, queue: str) -> None:
        """Note that some process has parked work of this queue."""
        if queue in self.queues:
            self.waits = True
            self.look.set()

    def has_room(self) -> None:
        """Note that a slot or a place in a task executor is free again."""
        if self.waits:
            self.look.set()

    def stop(self) -> None:
        """Wake the loop, so that it finds that it has to stop."""
        self.look.set()
