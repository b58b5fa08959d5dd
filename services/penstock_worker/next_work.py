"""Where the messages go that a worker's own endings have staged: to the broker, or straight into its free slots."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

import structlog

from penstock.messaging.outbox import Publisher
from penstock.store.staged_messages import StagedMessage
from penstock_worker.route_consumer import Claim
from penstock_worker.slots import Slots

log = structlog.get_logger()


class NextWork:
    """`queues` are those that this worker consumes just now."""

    def __init__(
        self,
        publisher: Publisher,
        slots: Slots,
        queues: Collection[str],
        claim: Claim,
        stopping: asyncio.Event,
    ) -> None:
        self._publisher = publisher
        self._slots = slots
        self._queues = queues
        self._claim = claim
        self._stopping = stopping
        self._claiming: set[asyncio.Task[None]] = set()

    def pass_on(self, staged: Sequence[StagedMessage], ended: int) -> None:
        """Publish what so many endings brought about. Work on a queue of ours is claimed here, as far as there are free slots:
        it need not go round by the broker. Not where all slots were taken before these ended: other work may wait on the
        route then, and comes first."""
        room = self._slots.free if self._slots.free > ended and not self._stopping.is_set() else 0
        here: dict[str, list[StagedMessage]] = {}
        others = []
        for message in staged:
            if message.queue in self._queues and len(message.ids) <= room:
                room -= len(message.ids)
                here.setdefault(message.queue, []).append(message)
            else:
                others.append(message)
        self._publisher.publish(others)
        for queue, found in here.items():
            task = asyncio.create_task(self._claim_here(queue, found), name=f"take {queue}")
            self._claiming.add(task)
            task.add_done_callback(self._claiming.discard)

    async def _claim_here(self, queue: str, found: Sequence[StagedMessage]) -> None:
        try:
            await self._claim(queue, [id for message in found for id in message.ids])
        except Exception:
            log.exception("worker.not_taken")
            self._publisher.publish(found)
            return
        self._publisher.settle(found)

    async def claimed(self) -> None:
        """Wait until what is to be claimed here is."""
        while self._claiming:
            await asyncio.wait(self._claiming)

    def give_up(self) -> None:
        """Claim nothing more here: what was to be claimed stays in the outbox, for a relay."""
        for task in self._claiming:
            task.cancel()
