"""The permits of a worker: the number of executions that submits may assign to it, on each of its routes.

A permit promises a free slot, so that assigned work begins at once. Messages on a route come first. When slots run out,
no permits are placed until the consumer of the route has waited for a message in vain. The consumer withdraws permits
if it needs their slots.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

import structlog

from penstock.store.processes import permits
from penstock.store.session.database import Session, is_transient, retried
from penstock_worker.records.slots import Slots

log = structlog.get_logger()

RENEWAL_S = 2.0
"""Seconds between two renewals of the permits of a worker. A permit is valid for 5 s (place_alike.sql)."""
QUIET_S = 0.002
"""The seconds without a message after which a consumer's route counts as empty. A broker delivers a waiting message
sooner."""
HURRIED = 4
"""The number of messages in a row, each sooner than QUIET_S, after which more messages may be left on the route."""
PAUSE_S = 0.05
"""The seconds without new permits after messages needed the slots of permits. To place permits and to withdraw them
costs a statement each."""
FEWEST, MOST = 2, 32
"""The minimum and the maximum number of permits of one worker on one route, if it has the slots."""
WITHDRAWAL_S = 5.0
"""Seconds for which a worker that stops tries to withdraw its permits."""
PERIOD_S = 1.0
"""The seconds of work at the recent rate for which permits are placed."""


@dataclass(slots=True)
class RoutePermits:
    """The permits of one route.

    `out` permits are placed, or taken by submits with notifications that have not arrived. `waits_since` is when the
    consumer began to wait for a message; None while it has one. `behind`: messages may be left on the route.
    `is_timed`: a timer will check the consumer's wait. `hurried` messages in a row came within QUIET_S. `used` counts
    the executions since `counted_at` that used a permit or lacked one. `rate` is the smoothed number of these per
    second. `late` permits were taken by submits at the last renewal. No permits are placed before `paused_until`.
    `definitions` may be assigned."""

    out: int = 0
    waits_since: float | None = None
    behind: bool = True
    is_timed: bool = False
    hurried: int = 0
    used: int = 0
    counted_at: float = 0.0
    rate: float = 0.0
    late: int = 0
    paused_until: float = 0.0
    definitions: Sequence[int] = ()

    def is_behind(self, now: float) -> bool:
        """Return whether messages may be left on the route."""
        if self.waits_since is not None and now >= self.waits_since + QUIET_S:
            self.behind, self.hurried = False, 0
        return self.behind

    def count(self, now: float) -> None:
        """Update the rate."""
        seconds = now - self.counted_at
        if seconds > 0:
            weight = min(1.0, seconds / PERIOD_S)
            self.rate += weight * (self.used / seconds - self.rate)
            self.used, self.counted_at = 0, now


class Permits:
    """The keeper of permits while this worker listens and has free slots. `definitions` returns the definitions that
    may be assigned to the worker on a queue. `behind`: the outbox is the queue, and no permits are placed while a
    message waits there."""

    def __init__(
        self,
        session: Session,
        worker: UUID,
        slots: Slots,
        definitions: Callable[[str], Sequence[int]],
        *,
        behind: bool,
        every: float = RENEWAL_S,
    ) -> None:
        """`every`: seconds between two renewals."""
        self._session = session
        self._worker = worker
        self._slots = slots
        self._definitions = definitions
        self._behind = behind
        self._every = every
        self.channel = f"assigned.{secrets.token_hex(16)}"
        """The channel of notifications for this worker. The name of the channel is secret, since what comes there is
        believed."""
        self._routes: dict[str, RoutePermits] = {}
        self._listens = False
        self._stopping = False
        self._woken = asyncio.Event()
        slots.freed.append(self._slot_freed)
        self.turn = asyncio.Lock()
        """Held by what gives slots away: claims, and renewals of permits."""

    # -- notices from other parts ---------------------------------------------------------------------------------

    def listens(self) -> None:
        """Note that this worker receives the notifications on its channel."""
        self._listens = True
        self._woken.set()

    def waits(self, queue: str) -> None:
        """Note that the consumer of this queue waits for messages."""
        if queue not in self._routes:
            self._woken.set()
        route = self._routes.setdefault(queue, RoutePermits())
        route.waits_since = time.monotonic()
        if not route.is_timed and (route.behind or self._lacks(queue)):
            route.is_timed = True
            asyncio.get_running_loop().call_later(QUIET_S, self._has_waited, queue)

    def _has_waited(self, queue: str) -> None:
        """Place permits if the consumer still waits for a message."""
        route = self._routes[queue]
        route.is_timed = False
        if route.waits_since is None:
            return
        if route.is_behind(time.monotonic()):
            route.is_timed = True
            asyncio.get_running_loop().call_later(QUIET_S, self._has_waited, queue)
        elif self._lacks(queue):
            self._woken.set()

    def has_message(self, queue: str) -> None:
        """Note that a message of this queue has come."""
        route = self._routes.setdefault(queue, RoutePermits())
        if route.waits_since is not None and time.monotonic() < route.waits_since + QUIET_S:
            route.hurried += 1
            route.behind = route.behind or route.hurried >= HURRIED
        else:
            route.behind, route.hurried = False, 0
        route.waits_since = None

    def is_full(self, queue: str) -> None:
        """Note that the consumer of this queue has no slot for more messages."""
        route = self._routes.setdefault(queue, RoutePermits())
        route.behind, route.waits_since = True, None

    def lacked(self, queue: str, count: int) -> None:
        """Note that `count` executions came by message. If no permit was placed, submits may have looked for one."""
        route = self._routes.setdefault(queue, RoutePermits())
        if not route.out:
            route.used += count
            if self._lacks(queue):
                self._woken.set()

    def use(self, queue: str, count: int) -> None:
        """Note that `count` assigned executions have arrived."""
        route = self._routes.setdefault(queue, RoutePermits())
        route.out = max(0, route.out - count)
        route.used += count
        self._promise()
        if self._lacks(queue):
            self._woken.set()

    async def make_room(self, slots: int) -> None:
        """Withdraw permits until `slots` slots are free and promised to no submit, or no permit is left. Permits that
        submits have taken stay promised. The caller of this method holds `turn`."""
        for queue, route in self._routes.items():
            lacking = min(slots, self._slots.free) - self._slots.unpromised
            if lacking <= 0:
                return
            if route.out:
                route.paused_until = time.monotonic() + PAUSE_S
                asyncio.get_running_loop().call_later(PAUSE_S, self._woken.set)
                withdrawn = await self._withdraw(queue, lacking)
                route.out = max(0, route.out - withdrawn)
                self._promise()

    async def _withdraw(self, queue: str, count: int) -> int:
        return await retried(lambda: permits.withdraw(self._session, self._worker, queue, count))

    def stop(self) -> None:
        """Place no more permits. `run` withdraws those that are out, and returns."""
        self._stopping = True
        self._woken.set()

    # -- the loop ------------------------------------------------------------------------------------------------

    async def run(self, look: Callable[[], object]) -> None:
        """Renew the permits at intervals, and place more when they run out. Call `look` at each renewal."""
        due = 0.0
        while not self._stopping:
            now = time.monotonic()
            if everything := now >= due:
                due = now + self._every * random.uniform(0.8, 1.0)
                if self._listens:
                    look()
            for queue, route in list(self._routes.items()) if self._listens else ():
                if everything or not route.definitions:
                    route.definitions = self._definitions(queue)
                if everything or self._lacks(queue):
                    await self._renew(queue, everything=everything)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, due - time.monotonic())):
                    await self._woken.wait()
            self._woken.clear()
        await self._withdraw_all()

    async def _withdraw_all(self) -> None:
        """Withdraw all permits, and wait for submits that have taken one. Afterwards all work that was assigned to this
        worker can be seen. If the database is away, the permits soon expire."""
        try:
            async with asyncio.timeout(WITHDRAWAL_S), self.turn:
                await retried(lambda: permits.withdraw_all(self._session, self._worker))
        except Exception as error:
            if not isinstance(error, TimeoutError) and not is_transient(error):
                raise
            log.warning("worker.permits_not_withdrawn", reason=str(error))
        for route in self._routes.values():
            route.out = 0
        self._promise()

    async def _renew(self, queue: str, *, everything: bool) -> None:
        route = self._routes[queue]
        async with self.turn:
            route.count(time.monotonic())
            limit = self._wanted(queue)
            if not limit and not route.out:
                return
            expected, route.out = route.out, max(route.out, limit)
            self._promise()
            try:
                withdrawn, placed = await permits.renew(
                    self._session,
                    self._worker,
                    queue,
                    self.channel,
                    route.definitions,
                    expected=expected,
                    limit=limit,
                    behind=self._behind,
                )
            except Exception as error:
                if not is_transient(error):
                    raise
                log.debug("worker.permits_not_renewed", reason=str(error))
                return
            arrived = max(expected, limit) - route.out
            pending = max(0, expected - withdrawn)
            if everything:
                # A permit that was already gone at the last renewal, and has not arrived since, is lost: the submit
                # that took it rolled back.
                pending -= min(pending, route.late)
                route.late = pending
            route.out = max(0, pending + placed - arrived)
            self._promise()

    def _wanted(self, queue: str) -> int:
        """Return the number of permits that this queue is to have: at most half of the free slots, and at most as many
        as are used in a second."""
        route = self._routes[queue]
        now = time.monotonic()
        if not route.definitions or now < route.paused_until or route.is_behind(now):
            return 0
        reserved = self._slots.promised - route.out
        half = max(1, self._slots.free // 2) if self._slots.free else 0
        return max(0, min(half - reserved, MOST, max(FEWEST, math.ceil(route.rate * PERIOD_S))))

    def _lacks(self, queue: str) -> bool:
        """Return whether at most a quarter of the wanted permits are left."""
        if self._routes[queue].out > MOST // 4:
            return False  # no more than MOST are wanted
        target = self._wanted(queue)
        return target > 0 and self._routes[queue].out <= target // 4

    def _slot_freed(self) -> None:
        """Note that an attempt has ended, and that a slot may be free now."""
        if any(self._lacks(queue) for queue in self._routes):
            self._woken.set()

    def _promise(self) -> None:
        self._slots.promised = sum(route.out for route in self._routes.values())
