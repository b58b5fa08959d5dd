"""Claims of every kind, one at a time: what they take gets its slots at once, and goes to the inbox."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from uuid import UUID

from penstock.messaging.metrics import Metrics
from penstock.messaging.outbox import Publisher
from penstock.run.run import executor_name
from penstock.store.outbox.queues import WORK
from penstock_worker.claiming.claims import Claimed, Claims
from penstock_worker.claiming.inbox import Inbox
from penstock_worker.claiming.open_claims import OpenClaims
from penstock_worker.claiming.parked_queues import ParkedQueues
from penstock_worker.records.executor_room import ExecutorRoom
from penstock_worker.records.slots import Slots


class Claiming:
    """The way of work from a queue into the inbox."""

    def __init__(
        self,
        claims: Claims,
        open_claims: OpenClaims,
        slots: Slots,
        room: ExecutorRoom,
        parked: ParkedQueues,
        publisher: Publisher,
        metrics: Metrics,
    ) -> None:
        self.claims = claims
        self.open_claims = open_claims
        self.inbox = Inbox()
        self._slots = slots
        self._room = room
        self._parked = parked
        self._publisher = publisher
        self._waits = metrics.start_seconds.labels
        self._turn = asyncio.Lock()

    async def claim(self, queue: str, ids: Sequence[UUID]) -> None:
        """Accept as many of these as there are free slots; the rest goes back on its route."""
        async with self._turn:  # two routes must not fill the same slots
            async for claimed in self.claims.claim(queue, ids):
                self.accept(queue, claimed)

    async def claim_parked(self, queue: str) -> bool:
        """Accept as much as there is room for of what is parked on this queue; says whether some was for this worker."""
        waits = False
        async with self._turn:
            async for claimed in self.claims.claim_parked(queue):
                self._accept_all(queue, claimed)
                waits = claimed.parked
        return waits

    def accept(self, queue: str, claimed: Claimed) -> None:
        """Take the slots of what was claimed of a queue, and pass it on. Nothing comes between the claim and this."""
        self._accept_all(queue, claimed)
        if claimed.parked:
            self._parked.parked(queue)  # room may have come since it was asked for
            self._publisher.parked(queue)

    def _accept_all(self, queue: str, claimed: Claimed) -> None:
        for claim, size in Counter(attempt.claim for attempt in claimed.attempts).items():
            self.open_claims.open(claim, size)
        waits = self._waits(queue.removeprefix(WORK))
        for attempt in claimed.attempts:
            waits.observe(attempt.waited)
            self._slots.take(attempt.event.execution_id, attempt.event.attempt)
            self._room.give(executor_name(attempt.version.action, attempt.of_route))
        self.inbox.put(claimed.attempts)
        self._publisher.publish(claimed.staged)
