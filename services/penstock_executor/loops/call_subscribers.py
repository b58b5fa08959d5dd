"""The loop that calls subscribers. A move is recorded in the transaction that makes it, and becomes calls here. Each
call is retried until it is answered: at least once, under an id that stays the same. No transaction is open during a
call."""

from __future__ import annotations

import asyncio

import httpcore
import structlog

from penstock.errors import ConfigurationError
from penstock.operate import signing_secrets
from penstock.service.assembly import Parts
from penstock.settings import Settings
from penstock.store.access import subscriptions
from penstock.store.access.secrets import Sealed
from penstock.store.access.subscriptions import Called, Delivery
from penstock.store.session.database import Session
from penstock_executor.loop_runner import Loop
from penstock_executor.subscriber_calls import TIMEOUT, call, connections, failed

log = structlog.get_logger()

MOVES = 500
"""Moves that one transaction turns into calls, at most."""
EACH = 20
"""Calls of one subscriber at a time, unless it is failing."""
AT_ONCE = 100
WAITING = 10_000
"""The maximum number of calls that wait for one subscriber. Further ones are dropped and counted."""
LEASE = 3 * TIMEOUT
"""Seconds after which another process makes a call, if the one that leased it died."""
PATIENCE = 3 * 86400.0
"""Seconds without an answer after which a subscriber is disabled."""
PAUSE = 0.5
"""Seconds between two turns while there are subscriptions."""
RECHECK = 15.0
"""Seconds after which an executor notices a first subscription."""


async def turn(parts: Parts, session: Session) -> bool | float:
    moves = await subscriptions.make_deliveries(session, MOVES, WAITING)
    deliveries = await subscriptions.lease_deliveries(session, EACH, AT_ONCE, LEASE)
    if deliveries:
        names = sorted({delivery.subscription for delivery in deliveries})
        secrets = await signing_secrets.of_subscriptions(session, names)
        async with connections(parts.settings, AT_ONCE) as pool:
            calls = (
                _call(parts.settings, pool, delivery, secrets.get(delivery.subscription))
                for delivery in deliveries
            )
            called = await asyncio.gather(*calls)
        for name in await subscriptions.settle(session, called, PATIENCE):
            log.warning("subscription.disabled", name=name, hint="See why with: penstock subscriptions list")
    if moves or deliveries:
        return True
    return PAUSE if await subscriptions.subscribed(session) else RECHECK


async def _call(
    settings: Settings, pool: httpcore.AsyncConnectionPool, delivery: Delivery, sealed: Sealed | None
) -> Called:
    if sealed is None:
        return failed(delivery, "it has no secret: set it with `penstock subscriptions set`")
    try:
        secret = await signing_secrets.opened(settings, sealed)
    except ConfigurationError as error:
        return failed(delivery, f"its secret cannot be opened: {error.message}. {error.hint}")
    return await call(pool, delivery, secret)


LOOP = Loop("call_subscribers", lambda settings: RECHECK, turn)
