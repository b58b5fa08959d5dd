"""Reporting: attempts that have ended are written down together, as many as ended meanwhile, in one transaction."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from uuid import UUID

import orjson
import structlog

from penstock.messaging.broadcast import Teller
from penstock.moves import FAILED, REQUESTED, WAITING
from penstock.store.database import Row, Session, StagedMessage, retried, staged_messages
from penstock_worker.after_attempt import Ending
from penstock_worker.claims import Claimed

log = structlog.get_logger()

FINISH = """
select messages, moved from finish_attempts($1, $2::uuid[], $3::smallint[], $4::text[], $5::text[], $6::text[], $7::float8[],
    $8::timestamptz[], $9::text[], $10::uuid[], $11::uuid[])
"""
REFUSED = "the database refused its result"
OURS = """
select id from execution where id = any($1::uuid[]) and claim = $2 and finished_at is not null
"""


class Reports:
    """Takes endings, writes them. `settled` is called with each attempt once it is written or known to be lost; `staged`
    then with what the endings brought about, messages to publish, and how many endings these were."""

    def __init__(
        self,
        session: Session,
        worker: UUID,
        timers: Teller,
        settled: Callable[[Claimed], None],
        staged: Callable[[list[StagedMessage], int], None],
        *,
        batch: int = 500,
    ) -> None:
        self._session = session
        self._worker = worker
        self._timers = timers
        self._settled = settled
        self._staged = staged
        self._batch = batch
        self._pending: deque[tuple[Claimed, Ending]] = deque()
        self._arrived = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._open_claims: dict[UUID, int] = {}
        self._closed: list[UUID] = []
        self._left_open: set[UUID] = set()
        self.lost = 0

    def opened(self, claim: UUID, size: int) -> None:
        """A claim of `size` attempts was made; its row goes when the last of them is reported."""
        self._open_claims[claim] = self._open_claims.get(claim, 0) + size

    def add(self, claimed: Claimed, ending: Ending) -> None:
        self._pending.append((claimed, ending))
        self._empty.clear()
        self._arrived.set()

    def drop(self, claimed: Claimed, *, told: bool) -> None:
        """The attempt is not ours any more: nothing to report. Where nobody told us so, the database may think that it
        is: then the row of its claim stays, which is where the attempt is found and taken back."""
        self.lost += 1
        if not told:
            self._left_open.add(claimed.claim)
        claim = self._close(claimed)
        if claim is not None:
            self._closed.append(claim)  # goes with the next report
        self._settled(claimed)

    def _close(self, claimed: Claimed) -> UUID | None:
        left = self._open_claims[claimed.claim] - 1
        if left:
            self._open_claims[claimed.claim] = left
            return None
        del self._open_claims[claimed.claim]
        if claimed.claim in self._left_open:
            self._left_open.remove(claimed.claim)
            return None
        return claimed.claim

    async def run(self) -> None:
        while True:
            await self._arrived.wait()
            batch = [self._pending.popleft() for _ in range(min(self._batch, len(self._pending)))]
            if not self._pending:
                self._arrived.clear()
            if not batch:
                continue
            batch.sort(key=_by_id)
            claims, self._closed = self._closed, []
            claims += [claim for claimed, _ in batch if (claim := self._close(claimed)) is not None]
            await self._write(batch, claims)
            if not self._pending:
                self._empty.set()

    async def drained(self) -> None:
        """Wait until nothing is left to write."""
        await self._empty.wait()

    async def _write(self, batch: list[tuple[Claimed, Ending]], claims: list[UUID]) -> None:
        tries = 0

        async def finish() -> Row:
            nonlocal tries
            tries += 1
            return await self._finish(batch, claims)

        try:
            row = await retried(finish)
        except Exception as error:
            await self._split(batch, claims, error)
            return
        if any(ending.status in (REQUESTED, WAITING) for _, ending in batch):
            self._timers.tell()  # of when they are tried again, or were not answered
        moved = set(row["moved"])
        if len(moved) < len(batch):
            await self._account(batch, moved, unknown=tries > 1)
        for claimed, _ in batch:
            self._settled(claimed)
        self._staged(staged_messages(row), len(batch))

    async def _finish(self, batch: list[tuple[Claimed, Ending]], claims: list[UUID]) -> Row:
        [row] = await self._session.fetch(
            FINISH,
            self._worker,
            [claimed.event.execution_id for claimed, _ in batch],
            [claimed.event.attempt for claimed, _ in batch],
            [ending.status for _, ending in batch],
            [ending.result for _, ending in batch],
            [ending.error for _, ending in batch],
            [ending.delay for _, ending in batch],
            [ending.until for _, ending in batch],
            [ending.reason for _, ending in batch],
            [claimed.event.execution_id for claimed, _ in batch if claimed.plan.followed],
            claims,
        )
        return row

    async def _split(self, batch: list[tuple[Claimed, Ending]], claims: list[UUID], error: Exception) -> None:
        """The database refused the batch: halve it until the culprit stands alone, which then fails."""
        if len(batch) > 1:
            middle = len(batch) // 2
            await self._write(batch[:middle], [])
            await self._write(batch[middle:], claims)
            return
        claimed, ending = batch[0]
        log.error("worker.result_refused", execution=str(claimed.event.execution_id), error=str(error))
        if ending.error is not None and ending.result is None and ending.reason == REFUSED:
            self._settled(claimed)  # nothing more can be said of it; the sweeper will find it missing
            return
        told = {"type": "ResultNotStorable", "message": str(error)[:500].replace(chr(0), "")}
        await self._write(
            [(claimed, Ending(FAILED, error=orjson.dumps(told).decode(), reason=REFUSED))], claims
        )

    async def _account(self, batch: list[tuple[Claimed, Ending]], moved: set[UUID], *, unknown: bool) -> None:
        """Some attempts were not moved. After a commit of unknown outcome they may be ours and final already, which
        is success; else the claim is lost, and the result with it."""
        left = [claimed for claimed, _ in batch if claimed.event.execution_id not in moved]
        ours: set[UUID] = set()
        if unknown:
            rows = await self._session.fetch(OURS, [c.event.execution_id for c in left], self._worker)
            ours = {row["id"] for row in rows}
        for claimed in left:
            if claimed.event.execution_id not in ours:
                self.lost += 1
                log.warning(
                    "worker.claim_lost",
                    execution=str(claimed.event.execution_id),
                    attempt=claimed.event.attempt,
                )


def _by_id(item: tuple[Claimed, Ending]) -> UUID:
    return item[0].event.execution_id
