"""The reports of ended attempts. Those that ended during one transaction are written together in the next."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from uuid import UUID

import orjson
import structlog

from penstock.attempts.new_effect import NewEffect
from penstock.attempts.owned_attempt import OwnedAttempt
from penstock.attempts.traced_attempt import CLAIM_LOST
from penstock.client.answers import Stale
from penstock.errors import Conflict, PenstockError, WrongClock
from penstock.language.moves import COMPLETED, FAILED, REQUESTED, WAITING
from penstock.language.policies.after_attempt import Ending
from penstock.language.terms.redaction import concealed
from penstock.messaging.broadcast import CoalescedBroadcast
from penstock.run.cut_texts import cut_end, storable
from penstock.store.executions import attempts, plain_executions
from penstock.store.executions.attempts import AttemptEnd, Finished
from penstock.store.session.database import Session, retried
from penstock_worker.claiming.claims import OpenClaims
from penstock_worker.claiming.parked_queues import ParkedQueues
from penstock_worker.ending.next_work import NextWork, Taking, finish_and_go_on
from penstock_worker.outgoing.writer import (
    RENEWALS,
    EffectWriter,
    lock_for_signals,
    store_with_ends,
    with_new_ids,
)
from penstock_worker.records.slots import Slots

log = structlog.get_logger()

REFUSED = "the database refused its result"


Report = tuple[OwnedAttempt, AttemptEnd]
"""An attempt and its end."""


class Reports:
    """The writer of reports. After each write it frees the slots of the attempts that were written or lost, and then
    lets `next_work` handle the work that follows."""

    def __init__(
        self,
        session: Session,
        worker: UUID,
        timers: CoalescedBroadcast,
        slots: Slots,
        next_work: NextWork,
        open_claims: OpenClaims,
        parked: ParkedQueues,
        effects: EffectWriter,
        *,
        batch: int = 500,
    ) -> None:
        self._session = session
        self._worker = worker
        self._timers = timers
        self._slots = slots
        self._parked = parked
        self._effects = effects
        self._next = next_work
        self._batch = batch
        self._pending: deque[Report] = deque()
        self._arrived = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._deletable: list[UUID] = []
        self._claims = open_claims
        self.lost = 0
        """The number of attempts that were taken away, with a refused or unreported result."""

    def add(self, attempt: OwnedAttempt, ending: Ending) -> None:
        """Report an ending. The ending is written as soon as possible."""
        if attempt.traced is not None:
            attempt.traced.end(ending.status, ending.error)
        self._pending.append((attempt, attempt.ended(ending)))
        self._empty.clear()
        self._arrived.set()

    def discard(self, attempt: OwnedAttempt, *, known_to_be_lost: bool) -> None:
        """Drop an attempt that no longer belongs to this worker, without a report.

        If the loss is not certain, the database may still have the attempt as this worker's. Then the row of its claim
        stays, by which executors notice the attempt and take it back.
        """
        self.lost += 1
        if attempt.traced is not None:
            attempt.traced.end(CLAIM_LOST)
        if not known_to_be_lost:
            self._claims.keep(attempt.claim)
        claim = self._claims.count_down(attempt.claim)
        if claim is not None:
            self._deletable.append(claim)  # deleted with the next report
        self._settled(attempt)

    async def run(self) -> None:
        while True:
            await self._arrived.wait()
            batch = [self._pending.popleft() for _ in range(min(self._batch, len(self._pending)))]
            if not self._pending:
                self._arrived.clear()
            if not batch:
                continue
            batch.sort(
                key=lambda report: report[1].execution_id.int
            )  # the order in which all processes lock rows
            claims, self._deletable = self._deletable, []
            counted = (self._claims.count_down(attempt.claim) for attempt, _ in batch)
            claims += [claim for claim in counted if claim is not None]
            await self._write(batch, claims)
            if not self._pending:
                self._empty.set()

    async def drained(self) -> None:
        """Wait until all reports are written."""
        await self._empty.wait()

    async def _write(self, batch: Sequence[Report], claims: Sequence[UUID]) -> None:
        tries = 0
        taking = Taking(self._next)
        ends = [end for _, end in batch]
        has_effects = any(_effects(report) for report in batch)
        go_on = taking if not has_effects and self._goes_on(batch) else None

        async def write() -> Finished:
            nonlocal tries
            tries += 1
            if has_effects:
                return await self._finish_with_effects(batch, claims)
            if tries == 1:
                return await finish(self._session, self._worker, ends, claims, go_on)
            # The previous try may have been committed although its answer was lost. This try shows whether it was.
            finished = await finish(self._session, self._worker, ends, claims, None)
            await taking.find()
            return finished

        try:
            finished = await retried(write)
        except Exception as error:
            taking.over()
            await self._split(batch, claims, error)
            return
        if any(end.ending.status in (REQUESTED, WAITING) for end in ends):
            # The executors' timers have to know when these executions are retried, or time out.
            self._timers.send()
        if len(finished.moved) < len(batch):
            unmoved = [attempt for attempt, end in batch if end.execution_id not in finished.moved]
            await self._count_lost(unmoved, first_try=tries == 1)
        for attempt, _ in batch:
            self._settled(attempt)
        taking.begin()
        taking.over()
        self._next.pass_on(finished.staged, len(batch), went_on=taking.went_on)

    async def _finish_with_effects(self, batch: Sequence[Report], claims: Sequence[UUID]) -> Finished:
        """Record these ends together with the transactional requests of their attempts. If an earlier try was committed
        although its answer was lost, it has moved the executions, and this try stores nothing for them."""
        for _ in range(RENEWALS):
            try:
                effects = [effect for report in batch for effect in _effects(report)]
                ends = [end for _, end in batch]
                return await finish(self._session, self._worker, ends, claims, None, effects)
            except Stale:
                for report in batch:
                    report[0].effects[:] = await self._effects.renewed(_effects(report))
            except WrongClock:
                for report in batch:
                    report[0].effects[:] = with_new_ids(_effects(report))
                raise
        raise Conflict("a definition is being redefined again and again", hint="Try again in a moment.")

    def _goes_on(self, batch: Sequence[Report]) -> bool:
        """Return whether the slots of these attempts may be used for the work that follows. The slots may not be used
        if all of them are taken, since other work waits for them. Executors start callbacks (`on_success`,
        `on_failure`). The attempts of a batch have one slot together."""
        return self._slots.free > 0 and not any(
            attempt.version.followed or attempt.version.batch for attempt, _ in batch
        )

    async def _split(self, batch: Sequence[Report], claims: Sequence[UUID], error: Exception) -> None:
        """Halve a batch that the database refused, until the faulty attempt is alone. Its execution then fails."""
        if len(batch) > 1:
            middle = len(batch) // 2
            await self._write(batch[:middle], [])
            await self._write(batch[middle:], claims)
            return
        [(attempt, end)] = batch
        ending = end.ending
        log.error("worker.result_refused", execution_id=str(end.execution_id), reason=str(error))
        if ending.error is not None and ending.result is None and ending.reason == REFUSED:
            # The database refused the failure of the attempt too. From now on no heartbeat names the attempt, so
            # executors take it back as missing.
            self._settled(attempt)
            return
        kind = (
            type(error).__name__
            if attempt.effects and isinstance(error, PenstockError)
            else "ResultNotStorable"
        )
        why = {"type": kind, "message": concealed(storable(cut_end(str(error), 500)), attempt.secrets)}
        failed = Ending(FAILED, error=orjson.dumps(why).decode(), reason=REFUSED)
        await self._write([(attempt, attempt.ended(failed))], claims)

    def _settled(self, attempt: OwnedAttempt) -> None:
        """Free the slot of an attempt that was written or lost."""
        self._slots.give_back(attempt.event.execution_id, attempt.event.attempt)
        self._parked.has_room()

    async def _count_lost(self, unmoved: Sequence[OwnedAttempt], *, first_try: bool) -> None:
        """Count the attempts that were lost with their claims, so that their results are lost too (invariant I2). After
        a commit of unknown outcome, that commit may have ended some of them, which is not a loss."""
        ours: set[UUID] = set()
        if not first_try:
            ids = [attempt.event.execution_id for attempt in unmoved]
            ours = await retried(lambda: attempts.ended_by(self._session, self._worker, ids))
        for attempt in unmoved:
            if attempt.event.execution_id not in ours:
                self.lost += 1
                log.warning(
                    "worker.claim_lost",
                    execution_id=str(attempt.event.execution_id),
                    attempt=attempt.event.attempt,
                )


async def finish(
    session: Session,
    worker: UUID,
    ends: Sequence[AttemptEnd],
    claims: Sequence[UUID],
    go_on: Taking | None,
    effects: Sequence[NewEffect] = (),
) -> Finished:
    """Record the ends, and delete the `claims` that have no attempts left. Store the transactional `effects` of those
    attempts that the worker still owned. Raises Conflict or Stale for an effect that cannot be stored.

    `go_on`: if possible, also do the work that follows.
    """
    costs = any(end.ending.costs for end in ends)
    if go_on is not None and not costs:
        finished = await finish_and_go_on(session, worker, ends, claims, go_on)
        if finished is not None:
            return finished
    async with session.transaction() as tx:
        if costs:
            await attempts.settle_costs(tx, worker, ends)
        if effects:
            await lock_for_signals(tx, effects)
            moved = await attempts.finish(tx, worker, ends, claims)
            await store_with_ends(
                tx, effects, moved, {e.execution_id for e in ends if e.ending.status == WAITING}
            )
        elif costs:
            moved = await attempts.finish(tx, worker, ends, claims)
        elif plain_executions.all_completed(ends):
            moved = await plain_executions.finish(tx, worker, ends, claims)
        else:
            moved = await attempts.finish(tx, worker, ends, claims, alone=True)
    return Finished(moved, tx.staged)


def _effects(report: Report) -> Sequence[NewEffect]:
    """Return the transactional requests that are stored with this end: none, unless the action returned."""
    attempt, end = report
    return attempt.effects if end.ending.status in (COMPLETED, WAITING) else ()
