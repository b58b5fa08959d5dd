"""The permits of takes. With a permit, a submit may assign its execution to a worker that waits at this gateway.

A waiting take has permits on its queues, at most as many as it has slots. Work that is assigned with a permit has the
claim id of the take. So each gateway can look it up if the take is sent again. A take is answered only after its
permits are withdrawn or taken.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import secrets
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from typing import Any

import asyncpg
import structlog

from penstock.language.terms.ids import new_id
from penstock.store.executions import assignment, remote_attempts
from penstock.store.executions.attempts import ClaimedAttempt
from penstock.store.outbox.queues import ASSIGNED
from penstock.store.processes import heartbeats, permits
from penstock.store.processes.permits import TakePermit
from penstock.store.session import notifications
from penstock.store.session.database import Database, Row, is_transient, retried
from penstock_api.session_pool import SessionPool
from penstock_api.work.definitions import Definitions
from penstock_api.work.held_attempts import HeldAttempts
from penstock_api.work.take import Take

log = structlog.get_logger()

MOST = 8
"""The maximum number of permits of this gateway on one queue, so that its statements do not grow with the number of
waiting workers. When a permit is used, another take gets one."""
RENEWAL_S = 2.0
"""Seconds between two renewals. Permits are valid for 5 s (place_alike.sql)."""
FRESH_S = 3.0
"""The maximum seconds after a query for which a notification is believed. Later, this process may have been suspended,
and its workers may have lost their work. Notifications arrive on the session of the queries, in order."""
LOCKED_S = 0.005
"""Seconds between two tries to withdraw a permit that a submit has locked."""
WITHDRAWAL_S = 5.0
"""Seconds after which a permit that stays locked is left to expire. Executors take back work that is assigned with it."""
PAUSE_S = 1.0
"""Seconds between two tries while the database is away."""


class TakePermits:
    """The permits of all takes of this gateway. Its session listens for notifications. It also holds the lock by which
    submits see that this gateway lives. `behind`: the outbox is the queue, and no permits are placed while a message
    waits there. `start` starts a named task besides the calls."""

    def __init__(
        self,
        database: Database,
        pool: SessionPool,
        definitions: Definitions,
        held: HeldAttempts,
        start: Callable[[Coroutine[Any, Any, None], str], object],
        *,
        behind: bool,
    ) -> None:
        self._is_possible = (
            not database.settings.database_pooler
        )  # behind a pooler, a session holds no lock and does not listen
        self._pool = pool
        self._definitions = definitions
        self._held = held
        self._start = start
        self._behind = behind
        self._holder = new_id()
        self._channel = f"{ASSIGNED}{secrets.token_hex(16)}"
        """The channel of notifications for this gateway. The name of the channel is secret, since what comes there is
        believed."""
        self._session = database.session_of_its_own(self._opened, relaxed=True)
        self._lock: int | None = None
        self._asked_at = 0.0
        self._takes: dict[Any, Take] = {}
        """The takes with permits, by claim id."""
        self._out: Counter[str] = Counter()
        """The number of these takes by queue."""
        self._new: dict[tuple[Take, str], None] = {}
        """Permits to place."""
        self._woken = asyncio.Event()
        self._turn = asyncio.Lock()
        """Held while permits are placed or withdrawn."""

    def offer(self, queue: str, takes: Iterable[Take]) -> bool:
        """Place permits for the takes that have waited longest, since no message waits on their queue. Return whether
        to offer again soon, because work is being claimed for one of them.

        Takes in the second half of their wait come last. A permit has to be withdrawn before its take is answered. So
        permits for takes that end soon would cost additional statements."""
        is_busy = False
        room = MOST - self._out[queue] if self._is_possible else 0
        for take in young_first(takes) if room > 0 else ():
            if room <= 0:
                break
            if take.waits and queue not in take.permitted and self._may_have(take):
                if take.turn.locked():
                    is_busy = True
                    continue
                take.permitted.add(queue)
                self._takes[take.claim] = take
                self._out[queue] += 1
                self._new[take, queue] = None
                room -= 1
        if self._new:
            self._woken.set()
        return is_busy

    def _may_have(self, take: Take) -> bool:
        """Return whether a take may have one more permit. The worker must serve all tenants, since a permit does not
        name tenants."""
        worker = take.worker
        if take.is_brief:
            return False
        return len(take.permitted) < take.slots and worker.tenants is None and not worker.cordoned

    async def settle(self, take: Take) -> None:
        """Withdraw the permits of a take. If some are gone, add the work that was assigned with them. The caller of
        this method holds `turn` of the take. If the database is away, this raises its error: the worker sends the take
        again, and then gets the work."""
        until = time.monotonic() + WITHDRAWAL_S
        try:
            while (take.permitted or take.may_have_more) and time.monotonic() < until:
                async with self._turn:
                    for queue in take.permitted:
                        self._new.pop((take, queue), None)
                    withdrawn, locked = await retried(
                        lambda: permits.withdraw_take(self._session, take.worker.id, take.claim),
                        deadline=WITHDRAWAL_S,
                    )
                    gone = take.permitted - withdrawn - locked
                    self._forget(take, withdrawn | gone)  # before another renewal counts these permits
                if gone or take.may_have_more:
                    self.add(take, await self.look_up(take))
                    take.may_have_more = False
                if take.permitted:
                    await asyncio.sleep(LOCKED_S)
        except Exception:
            self._forget(take, set(take.permitted))
            raise
        if take.permitted:
            log.warning("gateway.permit_not_withdrawn", worker=take.worker.identity.name)
            self._forget(take, set(take.permitted))

    async def look_up(self, take: Take) -> list[ClaimedAttempt]:
        """Return the attempts that are claimed for a take."""

        async def read() -> list[ClaimedAttempt]:
            async with self._pool.session() as session:
                calls, rows = await remote_attempts.look_up(session, take.claim)
                if rows:
                    take.has_looked_up(calls)
                await self._definitions.look_up(session, [row.definition_id for row in rows])
                return rows

        return await retried(read, deadline=WITHDRAWAL_S)

    def add(self, take: Take, rows: Sequence[ClaimedAttempt]) -> None:
        """Add attempts to a take, except those that it has already."""
        ids = {owned.event.execution_id for owned in take.attempts}
        new = [row for row in rows if row.execution_id not in ids]
        take.attempts += self._held.begin(take.worker, take.claim, new)

    # -- notifications ---------------------------------------------------------------------------------------------

    def _heard(self, text: str) -> None:
        """Answer a take with the work that a transaction has assigned to its worker. `text` is trusted, since only the
        database knows the channel."""
        take = self._takes.get(assignment.claim_in(text))
        if take is None:  # the take was settled, and this assignment was looked up
            return
        message = assignment.read(text)
        if message is None or time.monotonic() > self._asked_at + FRESH_S:
            self._start(self._look([take]), "look for assigned work")
        else:
            self._start(self._give(take, {message.queue}, message.attempts), "give assigned work")

    async def _give(self, take: Take, queues: set[str], rows: Sequence[ClaimedAttempt]) -> None:
        async with take.turn:
            if self._takes.get(take.claim) is take:
                self._forget(take, queues)
                self.add(take, rows)
                take.close()

    async def _look(self, takes: Sequence[Take]) -> None:
        """Look up assigned work for these takes, and answer those that have some."""
        try:
            async with self._pool.session() as session:
                claims = await permits.claims_made(session, [take.claim for take in takes])
            for take in takes:
                if take.claim in claims and take.waits:
                    await self._give(take, set(), await self.look_up(take))
        except Exception as error:
            if not is_transient(error):
                raise
            log.warning("gateway.assigned_work_not_looked_up", reason=str(error))

    def _forget(self, take: Take, queues: set[str]) -> None:
        """Note that a take no longer has permits on these queues."""
        self._out.subtract(take.permitted & queues)
        take.permitted -= queues
        if not take.permitted and self._takes.get(take.claim) is take:
            del self._takes[take.claim]

    # -- the loop --------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Place permits, and renew them at intervals."""
        due = 0.0
        while True:
            if self._takes or self._new:
                try:
                    async with self._turn:
                        now = time.monotonic()
                        if now >= due:
                            due = now + RENEWAL_S * random.uniform(0.8, 1.0)
                            pairs = [
                                (take, queue) for take in self._takes.values() for queue in take.permitted
                            ]
                        else:
                            pairs = list(self._new)
                        assigned = await self._place(pairs)
                    if assigned:
                        await self._look(assigned)
                except Exception as error:
                    log.warning(
                        "gateway.permits_not_placed", reason=str(error), exc_info=not is_transient(error)
                    )
                    due = 0.0
                    await asyncio.sleep(PAUSE_S * random.uniform(0.5, 1.5))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, due - time.monotonic()) if self._takes else None):
                    await self._woken.wait()
            self._woken.clear()

    async def _place(self, pairs: Sequence[tuple[Take, str]]) -> list[Take]:
        """Place or renew these permits. Return the takes with a permit that existed and is gone: a submit has taken
        it."""
        if self._lock is None:
            await notifications.ping(self._session)  # opens the session
        lock = self._lock
        new, self._new = self._new, {}
        waiting = sorted(
            ((take, queue) for take, queue in pairs if take.waits and queue in take.permitted),
            key=lambda pair: (pair[0].worker.id, pair[1]),  # the order in which all gateways insert
        )
        if lock is None or not waiting:
            return []
        asked_at = time.monotonic()
        try:
            out = await permits.place_for_takes(
                self._session,
                self._holder,
                lock,
                self._channel,
                [self._permit(take, queue, is_new=(take, queue) in new) for take, queue in waiting],
                behind=self._behind,
            )
        except Exception:
            # The statement may have been committed, and a permit taken. So look up the claims of these takes when they
            # settle.
            for take, _ in new:
                take.may_have_more = True
            self._new = new | self._new
            raise
        self._asked_at = asked_at
        if lock != self._lock:
            # The session was opened again, and its former lock makes these permits invalid.
            self._new |= dict.fromkeys(waiting)
            self._woken.set()
        assigned = []
        for (take, queue), is_out in zip(waiting, out, strict=True):
            # A message of the queue waits and comes first, so no permit was placed.
            if not is_out and (take, queue) in new:
                self._forget(take, {queue})
            elif not is_out:
                take.may_have_more = True
                assigned.append(take)
        return assigned

    def _permit(self, take: Take, queue: str, *, is_new: bool) -> TakePermit:
        worker = take.worker
        runnable = worker.ability(self._definitions).runnable
        return TakePermit(worker.id, queue, take.claim, worker.actor, runnable, is_new)

    async def _opened(self, connection: asyncpg.Connection[Row]) -> None:
        """Listen on a new connection, and take its lock. Notifications to the former connection are lost, and its
        permits are invalid. So all permits are placed again, and assigned work is looked up."""
        connection.add_termination_listener(lambda _: self._lost())
        await notifications.listen(connection, self._channel, self._heard)
        await notifications.listen(connection, f"{ASSIGNED}{self._holder}", lambda _: self._look_soon())
        self._lock = await heartbeats.hold_lock(connection, self._holder)
        self._is_possible = self._lock is not None
        for take in self._takes.values():
            take.may_have_more = True
        self._look_soon()

    def _lost(self) -> None:
        self._lock = None
        for take in self._takes.values():
            self._new |= {(take, queue): None for queue in take.permitted}
        self._woken.set()

    def _look_soon(self) -> None:
        if self._takes:
            self._start(self._look(list(self._takes.values())), "look for assigned work")


def young_first(takes: Iterable[Take]) -> Iterator[Take]:
    """Yield the takes in the first half of their wait, and then the other takes. Both parts keep the order of `takes`."""
    now, aged = time.monotonic(), []
    for take in takes:
        if take.ages_at > now:
            yield take
        else:
            aged.append(take)
    yield from aged
