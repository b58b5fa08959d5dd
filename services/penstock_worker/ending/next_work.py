"""The messages that a worker's own endings have staged, which go to the broker or to the worker's own free slots. Work
for the slots that the endings free is claimed in their transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from uuid import UUID

import structlog

from penstock.advance.remembered import RememberedWorkflows
from penstock.language.terms.ids import new_id
from penstock.messaging.outbox import Publisher
from penstock.store.executions.attempts import ClaimAnswer, Claimant
from penstock.store.outbox.queues import PLACED
from penstock.store.session.database import Transaction
from penstock.store.session.staged_messages import StagedMessage
from penstock_worker.claiming.claiming import Claiming
from penstock_worker.claiming.claims import Claimed
from penstock_worker.records.slots import Slots

log = structlog.get_logger()


@dataclass(slots=True)
class Taking:
    """A claim in the transaction that stages the work: its `queue`, the `claimed` work, and the messages that need not
    be published now."""

    work: NextWork
    id: UUID = field(default_factory=new_id)
    queue: str | None = None
    claimed: Claimed | None = None
    offers: list[StagedMessage] = field(default_factory=list)

    @property
    def remembered(self) -> RememberedWorkflows:
        return self.work.remembered

    def asked(self, ends: int) -> tuple[Claimant, list[str]]:
        """Return the claimant for the slots of `ends` attempts, and the queues from which it claims."""
        return self.work.asked(self, ends)

    @property
    def let_in(self) -> bool:
        return self.work.let_in

    def got(self, queue: str | None, claimed: ClaimAnswer) -> None:
        """Note what was claimed from a queue. `queue` is None if nothing was."""
        self.work.got(self, queue, claimed)

    async def take(self, tx: Transaction, ends: int) -> None:
        """Claim an envelope that this transaction, which ends `ends` attempts, has staged."""
        await self.work.take(self, tx, ends)


class NextWork:
    """The work that follows from ends. `queues` are those from which this worker currently consumes."""

    def __init__(
        self,
        publisher: Publisher,
        slots: Slots,
        queues: Collection[str],
        claiming: Claiming,
        stopping: asyncio.Event,
    ) -> None:
        self._publisher = publisher
        self._slots = slots
        self._queues = queues
        self._claims = claiming.claims
        self._claiming = claiming
        self._stopping = stopping
        self.remembered = RememberedWorkflows()
        self.let_in = False
        """Whether the last endings brought work to this worker. Then the next ones also claim executions that wait for
        slots."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def take(self, taking: Taking, tx: Transaction, ends: int) -> None:
        """Claim an envelope that this transaction has staged, if it fits into the slots of the `ends` attempts that it
        ends. These slots are free once it has committed, whatever else is claimed meanwhile."""
        if self._stopping.is_set():
            return
        for message in tx.staged:
            if message.queue in self._queues and len(message.ids) <= ends:
                taking.queue = message.queue
                taking.claimed = await self._claims.claim_in(tx, taking.id, message.queue, message.ids)
                if len(taking.claimed.attempts) == len(message.ids):
                    taking.offers = [message]
                    tx.staged.remove(message)
                return

    def asked(self, taking: Taking, ends: int) -> tuple[Claimant, list[str]]:
        """Return the claimant of this claim for the slots of `ends` attempts, and the queues from which it claims.
        There are none if this worker is stopping, or if its claims differ by queue."""
        queues = (
            [] if self._stopping.is_set() or not self._claims.alike(self._queues) else sorted(self._queues)
        )
        return self._claims.claimant(taking.id, ends, queues[0] if queues else ""), queues

    def got(self, taking: Taking, queue: str | None, claimed: ClaimAnswer) -> None:
        """Note what was claimed."""
        taking.queue = queue
        if queue is not None:
            taking.claimed = self._claims.claimed(taking.id, queue, claimed)

    async def find(self, taking: Taking) -> None:
        """Find out what the transaction has claimed, after the answer to its commit was lost."""
        taking.queue, taking.claimed = await self._claims.find(taking.id) or (None, None)
        taking.offers = []

    def begin(self, taking: Taking) -> None:
        """Start the claimed work. The transaction has committed, and the slots are free."""
        if taking.queue is not None and taking.claimed is not None:
            self._claiming.accept(taking.queue, taking.claimed)
            self._publisher.settle(taking.offers)

    def over(self, taking: Taking) -> None:
        """Close the claim, which was started or came to nothing."""
        self._claims.over(taking.id)

    def pass_on(self, staged: Sequence[StagedMessage], ends: int, *, went_on: bool) -> None:
        """Publish the messages of `ends` endings. Work on this worker's queues is instead claimed here, as far as
        slots are free, without the broker.

        If all slots were taken before these endings, nothing is claimed here, since older work may wait on the route.
        `went_on`: some of the work was claimed in the transaction.
        """
        free = self._slots.unpromised
        room = free if free > ends and not self._stopping.is_set() else 0
        local: dict[str, list[StagedMessage]] = {}
        remote = []
        placed = False
        for message in staged:
            placed = placed or (message.queue.removeprefix(PLACED) in self._queues and not message.outbox_id)
            if message.queue in self._queues and len(message.ids) <= room:
                room -= len(message.ids)
                local.setdefault(message.queue, []).append(message)
            else:
                remote.append(message)
        self._publisher.publish(remote)
        self.let_in = went_on or placed or bool(local)
        for queue, messages in local.items():
            task = asyncio.create_task(self._claim_here(queue, messages), name=f"take {queue}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _claim_here(self, queue: str, messages: Sequence[StagedMessage]) -> None:
        try:
            await self._claiming.claim(queue, [id for message in messages for id in message.ids])
        except Exception:
            log.exception("worker.not_taken")
            self._publisher.publish(messages)
            return
        self._publisher.settle(messages)

    async def claimed(self) -> None:
        """Wait until all work that is being claimed here is claimed."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def give_up(self) -> None:
        """Cancel these claims. Their work stays in the outbox, for a relay."""
        for task in self._tasks:
            task.cancel()
