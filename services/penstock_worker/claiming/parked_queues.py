"""The queues of a worker on which work may be parked that it could take."""

from __future__ import annotations

import asyncio
from collections.abc import Collection


class ParkedQueues:
    """The signal to look for parked work: there is some, or there is room for it again. `queues` are those that this worker
    consumes just now."""

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
        """Look once more at whether to stop."""
        self.look.set()
