"""The claims of parked work: executions that wait for a worker that has their action, or has room for them."""

from __future__ import annotations

import asyncio
import contextlib
import random

from penstock_worker.claiming.claims import Claiming
from penstock_worker.claiming.parked_queues import ParkedQueues
from penstock_worker.records.slots import Slots


class ParkedWork:
    """A loop that claims when `parked` gives the signal. It also claims at intervals, since broadcasts may be
    missed."""

    def __init__(
        self, parked: ParkedQueues, slots: Slots, claiming: Claiming, stopping: asyncio.Event, every: float
    ) -> None:
        self._parked = parked
        self._slots = slots
        self._claiming = claiming
        self._stopping = stopping
        self._every = every

    async def run(self) -> None:
        """Claim parked work until the worker is asked to stop."""
        while not self._stopping.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._every * random.uniform(0.8, 1.2)):
                    await self._parked.look.wait()
            self._parked.look.clear()
            if self._slots.can_claim and not self._stopping.is_set():
                self._parked.waits = False  # cleared before the claim: later parked work sets it
                for queue in list(self._parked.queues):
                    if await self._claiming.claim_parked(queue):
                        self._parked.waits = True
