"""The work that follows the ends of attempts, in the transaction of these ends. The worker that commits a step of a
workflow also claims the next step, for the slots that the ends free.

If that is not possible, an executor does the same after the message about the ends. That is so if there are more than a
few ends or starts, or if the transaction would have to wait for a lock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from uuid import UUID

import structlog

from penstock.advance import turn_spans
from penstock.advance.ends import NotAtOnce, follow_ends_at_once
from penstock.advance.remembered_workflows import RememberedWorkflows
from penstock.language.terms.ids import new_id
from penstock.messaging.outbox import Publisher
from penstock.store.executions import attempts
from penstock.store.executions.attempts import AttemptEnd, Claimant, Finished
from penstock.store.outbox.queues import PLACED
from penstock.store.session.database import Session, Transaction, is_transient
from penstock.store.session.staged_messages import StagedMessage
from penstock.store.workflows import steps
from penstock_worker.claiming.claims import Claimed, Claiming
from penstock_worker.records.slots import Slots

log = structlog.get_logger()

MOST_ENDS = 32
"""The maximum number of ends in one transaction with their following work. Larger batches are left to the executors,
which share the load."""


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
        self.publisher = publisher
        self.queues = queues
        self.claims = claiming.claims
        self.claiming = claiming
        self.stopping = stopping
        self._slots = slots
        self.remembered = RememberedWorkflows()
        self.let_in = False
        """Whether the last endings brought work to this worker. Then the next ones also claim executions that wait for
        slots."""
        self._tasks: set[asyncio.Task[None]] = set()

    def pass_on(self, staged: Sequence[StagedMessage], ends: int, *, went_on: bool) -> None:
        """Publish the messages of `ends` ends. If they are for this worker's queues, claim their work here instead,
        without the broker, as far as slots are free.

        If all slots were taken before these ends, claim nothing, since older work may wait on the route. `went_on`:
        some of the work was claimed in the transaction.
        """
        free = self._slots.unpromised
        room = free if free > ends and not self.stopping.is_set() else 0
        local: dict[str, list[StagedMessage]] = {}
        remote = []
        placed = False
        for message in staged:
            placed = placed or (message.queue.removeprefix(PLACED) in self.queues and not message.outbox_id)
            if message.queue in self.queues and len(message.ids) <= room:
                room -= len(message.ids)
                local.setdefault(message.queue, []).append(message)
            else:
                remote.append(message)
        self.publisher.publish(remote)
        self.let_in = went_on or placed or bool(local)
        for queue, messages in local.items():
            task = asyncio.create_task(self._claim_here(queue, messages), name=f"take {queue}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _claim_here(self, queue: str, messages: Sequence[StagedMessage]) -> None:
        try:
            await self.claiming.claim(queue, [id for message in messages for id in message.ids])
        except Exception:
            log.exception("worker.not_taken")
            self.publisher.publish(messages)
            return
        self.publisher.settle(messages)

    async def claimed(self) -> None:
        """Wait until all claims that are under way here have ended."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def give_up(self) -> None:
        """Cancel these claims. Their work stays in the outbox, for a relay."""
        for task in self._tasks:
            task.cancel()


@dataclass(slots=True)
class Taking:
    """A claim in the transaction that stages the work: its `queue`, the `claimed` work, and the messages that need not
    be published now. `went_on`: the work that follows the ends is done too, and what was claimed of it may begin."""

    work: NextWork
    id: UUID = field(default_factory=new_id)
    queue: str | None = None
    claimed: Claimed | None = None
    offers: list[StagedMessage] = field(default_factory=list)
    went_on: bool = False

    async def take(self, tx: Transaction, ends: int) -> None:
        """Claim an envelope that this transaction has staged, if it fits into the slots of the `ends` attempts that the
        transaction ends. These slots are free once it has committed, whatever else is claimed meanwhile."""
        work = self.work
        if work.stopping.is_set():
            return
        for message in tx.staged:
            if message.queue in work.queues and len(message.ids) <= ends:
                self.queue = message.queue
                self.claimed = await work.claims.claim_in(tx, self.id, message.queue, message.ids)
                if len(self.claimed.attempts) == len(message.ids):
                    self.offers = [message]
                    tx.staged.remove(message)
                return

    def asked(self, ends: int) -> tuple[Claimant, list[str]]:
        """Return the claimant for the slots of `ends` attempts, and the queues from which it claims. There are no
        queues if this worker is stopping, or if its queues have different task executors."""
        work = self.work
        queues = [] if work.stopping.is_set() or not work.claims.alike(work.queues) else sorted(work.queues)
        return work.claims.claimant_in_place(self.id, ends, queues[0] if queues else ""), queues

    def got(self, finished: Finished) -> None:
        """Note what was claimed."""
        self.queue = finished.queue
        if finished.queue is not None:
            self.claimed = self.work.claims.claimed(self.id, finished.queue, finished.claimed)

    async def find(self) -> None:
        """Find out what the transaction has claimed, after the answer to its commit was lost."""
        self.queue, self.claimed = await self.work.claims.find(self.id) or (None, None)
        self.offers = []
        self.went_on = self.claimed is not None

    def begin(self) -> None:
        """Start the claimed work. The transaction has committed, and the slots are free."""
        if self.went_on and self.queue is not None and self.claimed is not None:
            self.work.claiming.accept(self.queue, self.claimed)
            self.work.publisher.settle(self.offers)

    def over(self) -> None:
        """Close the claim, which was started or came to nothing."""
        self.work.claims.over(self.id)


async def finish_and_go_on(
    session: Session, worker: UUID, ends: Sequence[AttemptEnd], claims: Sequence[UUID], go_on: Taking
) -> Finished | None:
    """Record the ends, advance the workflows of these tasks, and claim the following tasks or the admitted executions.
    Return None if that is not possible: then the caller only writes the ends."""
    try:
        return await _going_on(session, worker, ends, claims, go_on)
    except Exception as error:
        if is_transient(error):
            raise
        # The following work may have failed, or the ends may have been refused. The ends alone show which one it was.
        log.warning("next_step.left_to_executors", reason=str(error))
        return None


async def _going_on(
    session: Session, worker: UUID, ends: Sequence[AttemptEnd], claims: Sequence[UUID], go_on: Taking
) -> Finished | None:
    """Finish the attempts with the work that follows. Return None if no work follows, or not in this transaction."""
    if len(ends) <= MOST_ENDS and any(end.workflow is not None for end in ends):
        try:
            return await _from_memory(session, ends, claims, go_on) or await _at_once(
                session, worker, ends, claims, go_on
            )
        except NotAtOnce:
            pass
    return await _letting_in(session, ends, claims, go_on) if go_on.work.let_in else None


async def _letting_in(
    session: Session, ends: Sequence[AttemptEnd], claims: Sequence[UUID], go_on: Taking
) -> Finished:
    """Finish the attempts, and claim executions that waited for the slots of limits that the attempts held."""
    finished = await attempts.finish_and_claim(session, *go_on.asked(len(ends)), ends, claims)
    go_on.got(finished)
    go_on.went_on = finished.queue is not None
    return finished


async def _from_memory(
    session: Session, ends: Sequence[AttemptEnd], claims: Sequence[UUID], go_on: Taking
) -> Finished | None:
    """Finish the attempts in one round trip, with the workflows that the worker has cached. Return None if a workflow
    is not cached or has changed."""
    remembered = go_on.work.remembered
    decided = await remembered.decide(session, ends)
    if decided is None:
        return None
    step, turns = decided
    claimant, queues = go_on.asked(len(ends))
    finished = await steps.take_steps(session, step, ends, claims, claimant, queues)
    if finished is None:
        return None
    for workflow in (workflow for workflow, turn in turns if turn.final is None):
        remembered.keep(workflow, step.versions[workflow.id][0] + 1)
    go_on.got(finished)
    turn_spans.send(turns)
    go_on.went_on = True
    return finished


async def _at_once(
    session: Session, worker: UUID, ends: Sequence[AttemptEnd], claims: Sequence[UUID], go_on: Taking
) -> Finished:
    async with session.transaction() as tx:
        opened = await steps.finish_and_open(tx, worker, ends, claims)
        committed = await follow_ends_at_once(tx, opened)
        if committed is not None:
            await go_on.take(tx, len(opened.moved))
    for workflow, version in committed or ():
        go_on.work.remembered.keep(workflow, version)
    go_on.went_on = committed is not None
    return Finished(opened.moved, tx.staged)
