"""The calls of programs that subscribed to moves of executions. A move is recorded in the transaction that makes it
and becomes calls here. Each call is made until it is answered: at least once, under an id that stays the same. No
transaction is open during a call."""

from __future__ import annotations

import asyncio

import structlog

from penstock.service.assembly import Parts
from penstock.store import subscriptions
from penstock.store.database import Session
from penstock_executor.loop_runner import Loop
from penstock_executor.subscriber_calls import TIMEOUT, call, connections

log = structlog.get_logger()

MOVES = 500
"""Moves that become calls in one transaction."""
EACH = 20
"""Calls of one subscriber at a time, where all goes well."""
AT_ONCE = 100
WAITING = 10_000
"""Calls that may wait for one subscriber. Those beyond are dropped, and counted."""
LEASE = 3 * TIMEOUT
"""Seconds after which somebody else makes a call whose maker died."""
PATIENCE = 3 * 86400.0
"""Seconds without any answer after which a subscriber is disabled."""
PAUSE = 0.5
"""Seconds between two looks, where somebody has subscribed."""
RECHECK = 15.0
"""Seconds after which an executor notices that somebody has."""


async def turn(parts: Parts, session: Session) -> bool | float:
    moves = await subscriptions.make_deliveries(session, MOVES, WAITING)
    taken = await subscriptions.take_deliveries(session, EACH, AT_ONCE, LEASE)
    if taken:
        async with connections(parts.settings, AT_ONCE) as pool:
            called = await asyncio.gather(*(call(pool, delivery) for delivery in taken))
        for name in await subscriptions.settle(session, called, PATIENCE):
            log.warning("subscription.disabled", name=name, hint="`penstock subscriptions list` says why.")
    if moves or taken:
        return True
    return PAUSE if await subscriptions.subscribed(session) else RECHECK


LOOP = Loop("call_subscribers", lambda settings: RECHECK, turn)
