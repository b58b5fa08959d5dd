"""Takes what is parked: work that some workers of its route cannot run, or not now, which waits for one that can."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Collection

from penstock_worker.slots import Slots


class ParkedWork:
    """A watch that looks whenever there may be parked work to take, or this worker has room again. It also looks now
    and then, as broadcasts may be missed. `queues` are those that this worker consumes just now; `claim` takes what
    it can of one, and says whether anything was parked there that this worker could run."""

    def __init__(
        self,
        queues: Collection[str],
        slots: Slots,
        claim: Callable[[str], Awaitable[bool]],
        stopping: asyncio.Event,
        every: float,
    ) -> None:
        self._queues = queues
        self._slots = slots
        self._claim = claim
        self._stopping = stopping
        self._every = every
        self._waits = False
        self._look = asyncio.Event()

    def parked(self, queue: str) -> None:
        """Something of this queue was parked, by whomever."""
        if queue in self._queues:
            self._waits = True
            self._look.set()

    def has_room(self) -> None:
        """A slot or a place in a task executor is free again."""
        if self._waits:
            self._look.set()

    def stop(self) -> None:
        """Look once more at whether to stop."""
        self._look.set()

    async def run(self) -> None:
        """Until it is time to stop."""
        while not self._stopping.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._every * random.uniform(0.8, 1.2)):
                    await self._look.wait()
            self._look.clear()
            if self._slots.free and not self._stopping.is_set():
                self._waits = False  # before the look: what is parked meanwhile asks for another one
                for queue in list(self._queues):
                    if await self._claim(queue):
                        self._waits = True
