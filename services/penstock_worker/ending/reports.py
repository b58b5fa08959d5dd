"""Reporting: attempts that have ended are written down together, as many as ended meanwhile, in one transaction."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import orjson
import structlog

from penstock.language.moves import FAILED, REQUESTED, WAITING
from penstock.language.policies.after_attempt import Ending
from penstock.messaging.broadcast import CoalescedBroadcast
from penstock.store.executions import attempts
from penstock.store.executions.attempts import AttemptEnd
from penstock.store.session.database import Session, retried
from penstock_worker.claiming.open_claims import OpenClaims
from penstock_worker.claiming.parked_queues import ParkedQueues
from penstock_worker.ending.next_step import Finished, finish
from penstock_worker.ending.next_work import NextWork, Taking
from penstock_worker.records.owned_attempt import OwnedAttempt
from penstock_worker.records.slots import Slots
from penstock_worker.records.traced_attempt import CLAIM_LOST

log = structlog.get_logger()

REFUSED = "the database refused its result"


@dataclass(slots=True)
class Report:
    """An attempt, and how it is to be written down."""

    attempt: OwnedAttempt
    ending: Ending

    @property
    def execution_id(self) -> UUID:
        return self.attempt.event.execution_id

    def as_end(self) -> AttemptEnd:
        event = self.attempt.event
        return AttemptEnd.of(
            event.execution_id,
            event.attempt,
            self.ending,
            followed=self.attempt.version.followed,
            workflow=event.workflow,
            task=event.task,
        )


class Reports:
    """Takes reports and writes them, and has `next_work` do what they brought about. Before that, the slot of each
    attempt that is written or known to be lost is free."""

    def __init__(
        self,
        session: Session,
        worker: UUID,
        timers: CoalescedBroadcast,
        slots: Slots,
        next_work: NextWork,
        open_claims: OpenClaims,
        parked: ParkedQueues,
        *,
        batch: int = 500,
    ) -> None:
        self._session = session
        self._worker = worker
        self._timers = timers
        self._slots = slots
        self._parked = parked
        self._next = next_work
        self._batch = batch
        self._pending: deque[Report] = deque()
        self._arrived = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._deletable: list[UUID] = []
        self._claims = open_claims
        self.lost = 0
        """Attempts that were taken away, and whose result was refused or not even reported."""

    def add(self, attempt: OwnedAttempt, ending: Ending) -> None:
        """Report this as soon as may be."""
        if attempt.traced is not None:
            attempt.traced.end(ending.status, ending.error)
        self._pending.append(Report(attempt, ending))
        self._empty.clear()
        self._arrived.set()

    def discard(self, attempt: OwnedAttempt, *, known_to_be_lost: bool) -> None:
        """The attempt is not ours any more, so nothing is reported. If that is only feared, the database may think that it
        still is ours: then the row of its claim stays, as that is where the attempt is found and taken back."""
        self.lost += 1
        if attempt.traced is not None:
            attempt.traced.end(CLAIM_LOST)
        if not known_to_be_lost:
            self._claims.keep(attempt.claim)
        claim = self._claims.count_down(attempt.claim)
        if claim is not None:
            self._deletable.append(claim)  # with the next report
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
                key=lambda report: report.execution_id.int
            )  # the order in which all processes lock rows
            claims, self._deletable = self._deletable, []
            counted = (self._claims.count_down(report.attempt.claim) for report in batch)
            claims += [claim for claim in counted if claim is not None]
            await self._write(batch, claims)
            if not self._pending:
                self._empty.set()

    async def drained(self) -> None:
        """Wait until nothing is left to write."""
        await self._empty.wait()

    async def _write(self, batch: Sequence[Report], claims: Sequence[UUID]) -> None:
        tries = 0
        taking = Taking(self._next)
        go_on = taking if self._goes_on(batch) else None

        async def write() -> Finished:
            nonlocal tries
            tries += 1
            ends = [report.as_end() for report in batch]
            if tries == 1:
                return await finish(self._session, self._worker, ends, claims, go_on)
            # The try before this one may have been committed and its answer lost. Once this one has been there, that is known.
            finished = await finish(self._session, self._worker, ends, claims, None)
            await self._next.find(taking)
            finished.went_on = taking.claimed is not None
            return finished

        try:
            finished = await retried(write)
        except Exception as error:
            self._next.over(taking)
            await self._split(batch, claims, error)
            return
        if any(report.ending.status in (REQUESTED, WAITING) for report in batch):
            self._timers.send()  # of when they are tried again, or are over without an answer
        if len(finished.moved) < len(batch):
            unmoved = [report.attempt for report in batch if report.execution_id not in finished.moved]
            await self._count_lost(unmoved, first_try=tries == 1)
        for report in batch:
            self._settled(report.attempt)
        if finished.went_on:
            self._next.begin(taking)
        self._next.over(taking)
        self._next.pass_on(finished.staged, len(batch), went_on=finished.went_on)

    def _goes_on(self, batch: Sequence[Report]) -> bool:
        """Return true if no other work waits for the slots with which these attempts may go on: with all slots taken,
        other ends are about to be reported. What follows an action by `on_success` or `on_failure` is started by
        executors."""
        return self._slots.free > 0 and not any(report.attempt.version.followed for report in batch)

    async def _split(self, batch: Sequence[Report], claims: Sequence[UUID], error: Exception) -> None:
        """The database refused the batch: halve it until the culprit stands alone, which then fails."""
        if len(batch) > 1:
            middle = len(batch) // 2
            await self._write(batch[:middle], [])
            await self._write(batch[middle:], claims)
            return
        [report] = batch
        attempt, ending = report.attempt, report.ending
        log.error("worker.result_refused", execution_id=str(report.execution_id), reason=str(error))
        if ending.error is not None and ending.result is None and ending.reason == REFUSED:
            # Even its failure was refused. No heartbeat names the attempt from now on, so it is taken back as missing.
            self._settled(attempt)
            return
        why = {"type": "ResultNotStorable", "message": str(error)[:500].replace(chr(0), "")}
        failed = Ending(FAILED, error=orjson.dumps(why).decode(), reason=REFUSED)
        await self._write([Report(attempt, failed)], claims)

    def _settled(self, attempt: OwnedAttempt) -> None:
        """Free the slot of an attempt that is written down, or lost."""
        self._slots.give_back(attempt.event.execution_id)
        self._parked.has_room()

    async def _count_lost(self, unmoved: Sequence[OwnedAttempt], *, first_try: bool) -> None:
        """The claims of these attempts are lost, and their results with them (I2). After a commit of unknown outcome some
        may have been ended by that commit, which is success."""
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
