"""Claims of every kind, one at a time: what they take gets its slots at once, and goes to the inbox."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from uuid import UUID

from penstock.attempts.owned_attempt import OwnedAttempt
from penstock.messaging.metrics import Metrics
from penstock.messaging.outbox import Publisher
from penstock.run.run import executor_name
from penstock.store.outbox.queues import WORK
from penstock_worker.claiming.claims import Claimed, Claims
from penstock_worker.claiming.parked_queues import ParkedQueues
from penstock_worker.claiming.permits import Permits
from penstock_worker.records.batches import Batches
from penstock_worker.records.executor_room import ExecutorRoom
from penstock_worker.records.slots import Slots
from penstock_worker.records.worker_state import Inbox


class OpenClaims:
    """The number of unreported attempts of each claim of a worker. The report of a claim's last attempt deletes the row
    of the claim."""

    def __init__(self) -> None:
        self._left: dict[UUID, int] = {}
        self._kept: set[UUID] = set()

    def open(self, claim: UUID, size: int) -> None:
        """Add a claim of `size` attempts."""
        self._left[claim] = self._left.get(claim, 0) + size

    def keep(self, claim: UUID) -> None:
        """Keep the row of a claim: one of its attempts is found and taken back by that row."""
        self._kept.add(claim)

    def count_down(self, claim: UUID) -> UUID | None:
        """Count an attempt as reported or dropped. Return the claim if its row is to be deleted now."""
        remaining = self._left[claim] - 1
        if remaining:
            self._left[claim] = remaining
            return None
        del self._left[claim]
        if claim in self._kept:
            self._kept.remove(claim)
            return None
        return claim


class Claiming:
    """The way of work from a queue into the inbox."""

    def __init__(
        self,
        claims: Claims,
        open_claims: OpenClaims,
        slots: Slots,
        room: ExecutorRoom,
        batches: Batches,
        inbox: Inbox,
        parked: ParkedQueues,
        permits: Permits,
        publisher: Publisher,
        metrics: Metrics,
    ) -> None:
        self.claims = claims
        self.open_claims = open_claims
        self.permits = permits
        self._inbox = inbox
        self._slots = slots
        self._room = room
        self._batches = batches
        self._parked = parked
        self._publisher = publisher
        self._waits = metrics.start_seconds.labels

    async def claim(self, queue: str, ids: Sequence[UUID]) -> int:
        """Accept as many of these as there are free slots, and room in batches; the rest goes back on its route. Return how many
        were accepted."""
        accepted = 0
        async with self.permits.turn:  # two routes must not fill the same slots
            await self.permits.make_room(len(ids))
            async for claimed in self.claims.claim(queue, ids):
                self.accept(queue, claimed)
                self.permits.lacked(queue, len(claimed.attempts))
                accepted += len(claimed.attempts)
        return accepted

    async def claim_parked(self, queue: str) -> bool:
        """Accept as much as there is room for of what is parked on this queue; says whether some was for this worker."""
        async with self.permits.turn:
            waits = await self._claim_parked(queue)
            if waits and self._slots.free > self._slots.unpromised:
                await self.permits.make_room(self._slots.free)
                waits = await self._claim_parked(queue)
        return waits

    async def _claim_parked(self, queue: str) -> bool:
        waits = False
        async for claimed in self.claims.claim_parked(queue):
            self._accept_all(queue, claimed)
            waits = claimed.parked
        return waits

    def accept(self, queue: str, claimed: Claimed) -> None:
        """Take the slots of what was claimed of a queue, and pass it on. Nothing comes between the claim and this."""
        self._accept_all(queue, claimed)
        if self._slots.can_fill():
            self._parked.has_room()
        if claimed.parked:
            self._parked.parked(queue)  # room may have come since it was asked for
            self._publisher.parked(queue)

    def accept_assigned(self, queue: str, claimed: Claimed, room: int) -> list[OwnedAttempt]:
        """Take what a submit has assigned to this worker, and pass on as many attempts as there is room for. Return the others,
        which this worker has to hand back."""
        self._hold(claimed)
        self._begin(queue, claimed.attempts[:room])
        for attempt in claimed.attempts[room:]:
            self._batches.leave(attempt)
        return claimed.attempts[room:]

    def _accept_all(self, queue: str, claimed: Claimed) -> None:
        self._hold(claimed)
        self._begin(queue, claimed.attempts)
        self._publisher.publish(claimed.staged)

    def _hold(self, claimed: Claimed) -> None:
        for claim, size in Counter(attempt.claim for attempt in claimed.attempts).items():
            self.open_claims.open(claim, size)
        for attempt in claimed.attempts:
            batch = self._batches.join(attempt)
            self._slots.take(attempt.event.execution_id, attempt.event.attempt, batch)

    def _begin(self, queue: str, attempts: Sequence[OwnedAttempt]) -> None:
        waits = self._waits(queue.removeprefix(WORK))
        for attempt in attempts:
            waits.observe(attempt.waited)
            if attempt.version.batch is None:  # a batch has one place for all
                self._room.give(executor_name(attempt.version.action, attempt.of_route))
        self._inbox.put(attempts)
