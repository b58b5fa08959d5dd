"""The way of assigned work into the inbox. A transaction that makes an execution ready can claim it for this worker.

The notification contains all that the worker needs to begin without a query. A notification can be lost with the
connection. Then the worker finds the claim by its mark when it looks for claims that never arrived.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Container, Iterable
from uuid import UUID

import structlog

from penstock.attempts.owned_attempt import OwnedAttempt
from penstock.language.policies.after_attempt import NOT_BEGUN, Ending
from penstock.store.executions import assignment, attempts
from penstock.store.executions.attempts import ClaimAnswer
from penstock.store.session.database import Session, is_transient
from penstock_worker.claiming.claims import Claimed, Claiming
from penstock_worker.claiming.permits import WITHDRAWAL_S, Permits
from penstock_worker.records.slots import Slots

log = structlog.get_logger()

UNDER_WAY_S = 0.5
"""Seconds for which the notification of a claim may be on its way. Older claims that have not arrived are looked up."""
FRESH_S = 3.0
"""The maximum seconds after a look for which a notification is believed. Later, this process may have been suspended
since the look, and executors may have taken its work away. Executors do so after 3 s at the earliest, or after the
stale threshold."""
LOOKED_UP = 1000
"""The number of looked-up claims that are remembered, in case their notifications come late."""
SETTLED_S = 0.005
"""Seconds until a notification is read again, if this worker still reports an earlier attempt of the execution."""
MOST_TRIES = 100
"""The number of tries to read an assignment. After the last one the claim is looked up."""


class Assignments:
    """The receiver of assigned work. `heard` takes notifications, and `look` looks up claims with lost notifications.
    `report` ends an attempt for which there is no slot."""

    def __init__(
        self,
        session: Session,
        worker: UUID,
        claiming: Claiming,
        permits: Permits,
        slots: Slots,
        report: Callable[[OwnedAttempt, Ending], None],
        *,
        fresh: float = FRESH_S,
    ) -> None:
        self._session = session
        self._worker = worker
        self._claiming = claiming
        self._permits = permits
        self._slots = slots
        self._report = report
        self._fresh = fresh
        self._asked_at = -math.inf
        self._horizon = 0.0
        """The last look saw all claims made before this time of the database, unless their transactions were still open."""
        self._closed = False
        self._arrived: set[UUID] = set()
        """Claims that have arrived since the last look began."""
        self._looked_up: OrderedDict[UUID, None] = OrderedDict()
        self._turn = asyncio.Lock()
        self._awaits_turn = False
        """True while a look for all claims waits for its turn. Such a look sees all that a later one would see."""
        self._tasks: set[asyncio.Task[None]] = set()

    def heard(self, text: str) -> None:
        """Begin the work that a transaction has assigned to this worker. `text` is trusted: only the database knows the
        channel on which it was sent."""
        self._read(text, MOST_TRIES)

    def _read(self, text: str, tries: int) -> None:
        if self._closed:
            return
        message = assignment.read(text)
        if message is None or not tries:
            self.look_soon(0.0)
            return
        claim, rows = message.claim, message.attempts
        held = self._slots.held()
        if self._has_arrived(claim) or any(held.get(row.execution_id) == row.attempt for row in rows):
            return
        if message.at < self._horizon or time.monotonic() > self._asked_at + self._fresh:
            # This process may have been suspended, and executors may have taken its work away meanwhile.
            self.look_soon(0.0)
            return
        if any(row.execution_id in held for row in rows):
            # The earlier attempt of the execution has ended in the database. Its slot is free once this worker gets the
            # answer to its report.
            asyncio.get_running_loop().call_later(SETTLED_S, self._read, text, tries - 1)
            return
        answer = ClaimAnswer(list(rows))
        self._accept(message.queue, claim, self._claiming.claims.claimed(claim, message.queue, answer))

    def look_soon(self, older: float = UNDER_WAY_S) -> None:
        """Start a look for claims that were made more than `older` seconds ago and have not arrived. If a look is under
        way and `older` is not 0, that look is enough. So is a look for all claims that has not begun."""
        if self._awaits_turn or (older and self._turn.locked()):
            return
        self._awaits_turn = not older
        task = asyncio.create_task(self._try_to_look(older), name="look for assigned work")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Take the work that was assigned last. The permits were withdrawn, so no more can be assigned."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(WITHDRAWAL_S):
                await self._try_to_look(0.0)
        self._closed = True
        for task in self._tasks:
            task.cancel()

    async def _try_to_look(self, older: float) -> None:
        try:
            await self.look(older)
        except Exception as error:
            if not is_transient(error):
                raise
            log.warning("worker.assigned_work_not_looked_up", reason=str(error))

    async def look(self, older: float = UNDER_WAY_S) -> None:
        """Begin the work of claims that were made more than `older` seconds ago and have not arrived."""
        async with self._turn:
            if not older:
                self._awaits_turn = False
            asked_at = time.monotonic()
            self._arrived.clear()
            # Work that arrived before this query is held, or its end is stored in the database.
            held = self._slots.held()
            arrived = self._claiming.open_claims.ids()
            claims, horizon = await attempts.assigned(self._session, self._worker, older, arrived)
            for claim, (queue, rows) in claims.items():
                if self._is_known(claim, [row.execution_id for row in rows], held):
                    continue
                log.info("worker.assigned_work_looked_up", executions=len(rows))
                self._looked_up[claim] = None
                while len(self._looked_up) > LOOKED_UP:
                    self._looked_up.popitem(last=False)
                self._accept(queue, claim, self._claiming.claims.claimed(claim, queue, ClaimAnswer(rows)))
            self._asked_at, self._horizon = asked_at, horizon

    def _has_arrived(self, claim: UUID) -> bool:
        return claim in self._arrived or claim in self._looked_up

    def _is_known(self, claim: UUID, ids: Iterable[UUID], held: Container[UUID]) -> bool:
        """Return whether a look can skip this claim of the executions `ids`, because it has arrived. `held` are the
        executions that were held when the look began. While an earlier attempt of one of `ids` is held, the claim is
        left to the next look."""
        now = self._slots.held()
        return self._has_arrived(claim) or any(id in now or id in held for id in ids)

    def _accept(self, queue: str, claim: UUID, claimed: Claimed) -> None:
        """Begin the work of a claim that has arrived. Permits promised its slots. If there are fewer slots, the rest
        goes back to its route."""
        self._arrived.add(claim)
        self._permits.use(queue, len(claimed.attempts))
        for attempt in self._claiming.accept_assigned(queue, claimed, self._slots.unheld):
            self._report(attempt, NOT_BEGUN)
