"""The loop that calls subscribers. A move is recorded in the transaction that makes it, and becomes calls here. Each
call is retried until it is answered: at least once, under an id that stays the same. No transaction is open during a
call, and no call waits for that of another subscriber."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpcore
import structlog

from penstock.errors import ConfigurationError
from penstock.operate import signing_secrets
from penstock.service.assembly import Parts, cancel
from penstock.settings import Settings
from penstock.store.access import subscriptions
from penstock.store.access.secrets import Sealed
from penstock.store.access.subscriptions import Called, Delivery
from penstock.store.session.database import Session
from penstock_executor.loop_runner import Loop, Turn
from penstock_executor.subscriber_calls import TIMEOUT, call, connections, failed

log = structlog.get_logger()

MOVES = 500
"""Moves that one transaction turns into calls, at most."""
EACH = 20
"""Calls of one subscriber at a time, at most."""
AT_ONCE = 100
"""Calls of one executor at a time. Each subscriber has an equal share: some that do not answer leave room for the others."""
WAITING = 10_000
"""The maximum number of calls that wait for one subscriber. Further ones are dropped and counted."""
LEASE = 3 * TIMEOUT
"""Seconds after which another process makes a call, if the one that leased it died."""
PATIENCE = 3 * 86400.0
"""Seconds without an answer after which a subscriber is disabled."""
PAUSE = 0.5
"""Seconds between two turns of the loop while there are subscriptions."""
TOGETHER = 0.02
"""Seconds after the end of a call in which further calls can end, to be settled in the same statement."""
RECHECK = 15.0
"""Seconds after which an executor notices a first subscription."""


class Calls:
    """The calls of an executor that are under way. A subscriber gets further calls when its earlier ones have ended."""

    def __init__(self, settings: Settings, session: Session, pool: httpcore.AsyncConnectionPool) -> None:
        self._settings = settings
        self._session = session
        self._pool = pool
        self._running: dict[asyncio.Task[Called], str] = {}
        """The name of the subscription by call."""
        self._called: list[Called] = []
        """The outcomes that are not recorded yet."""

    async def turn(self) -> bool | float:
        """Begin the calls that are due, and record the outcomes of calls that have ended."""
        moves = await subscriptions.make_deliveries(self._session, MOVES, WAITING)
        deliveries = await self._lease()
        if self._running:
            await asyncio.wait(self._running, timeout=PAUSE, return_when=asyncio.FIRST_COMPLETED)
            if any(task.done() for task in self._running):
                await asyncio.wait(self._running, timeout=TOGETHER)
        await self._settle()
        if moves or deliveries or self._running:
            return True
        return PAUSE if await subscriptions.subscribed(self._session) else RECHECK

    async def finish(self) -> None:
        """Wait for the calls that are under way, and record their outcomes."""
        if self._running:
            await asyncio.wait(self._running)
        await self._settle()

    async def end(self) -> None:
        await cancel(*self._running)

    async def _lease(self) -> list[Delivery]:
        room = AT_ONCE - len(self._running)
        if room <= 0:
            return []
        busy = set(self._running.values())
        deliveries = await subscriptions.lease_calls(self._session, busy, EACH, AT_ONCE, room, LEASE)
        if deliveries:
            names = sorted({delivery.subscription for delivery in deliveries})
            secrets = await signing_secrets.of_subscriptions(self._session, names)
            for delivery in deliveries:
                task = asyncio.create_task(self._call(delivery, secrets.get(delivery.subscription)))
                self._running[task] = delivery.subscription
        return deliveries

    async def _call(self, delivery: Delivery, sealed: Sealed | None) -> Called:
        """Return the outcome of a call, even if it fails with an error that no subscriber should cause: other calls
        go on then."""
        try:
            if sealed is None:
                return failed(delivery, "it has no secret: set it with `penstock subscriptions set`")
            secret = await signing_secrets.opened(self._settings, sealed)
            return await call(self._pool, delivery, secret)
        except ConfigurationError as error:
            return failed(delivery, f"its secret cannot be opened: {error.message}. {error.hint}")
        except Exception as error:
            log.exception("subscription.call_failed", name=delivery.subscription)
            return failed(delivery, f"{type(error).__name__}: {error}")

    async def _settle(self) -> None:
        for task in [task for task in self._running if task.done()]:
            del self._running[task]
            self._called.append(task.result())
        if self._called:
            for name in await subscriptions.settle(self._session, self._called, PATIENCE):
                log.warning(
                    "subscription.disabled", name=name, hint="See why with: penstock subscriptions list"
                )
            self._called.clear()


@asynccontextmanager
async def turns(parts: Parts, session: Session) -> AsyncIterator[Turn]:
    """Yield the function that the loop calls at each turn. At the exit, wait for the calls that are under way."""
    async with connections(parts.settings, AT_ONCE) as pool:
        calls = Calls(parts.settings, session, pool)
        try:
            yield calls.turn
            await calls.finish()
        finally:
            await calls.end()


LOOP = Loop("call_subscribers", lambda settings: RECHECK, turns=turns)
