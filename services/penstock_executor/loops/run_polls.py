"""Calls the functions of poll triggers when they are due, and takes in what they have found.

A call is an execution like any other, on a worker that has the function: a slow one blocks nothing here. One replica
at a time holds a trigger's row, for one transaction, and a call that is under way stands in it.
"""

from __future__ import annotations

import random

import structlog

from penstock.service.assembly import Parts
from penstock.store.events import polls
from penstock.store.schedules.firing import ids_at
from penstock.store.session.database import Session, is_transient
from penstock_executor import poll_results
from penstock_executor.loop_runner import Loop

log = structlog.get_logger()

BATCH = 100
"""Calls that begin in one transaction."""
RECHECK = 10.0
"""Seconds at the most until the loop looks again: so late does a replica hear of a new poll trigger."""
UNDER_WAY = 0.5
"""The same while a call is under way: no message announces its end."""
HELD = 0.1
"""Seconds until the loop looks again where others hold all that is due."""


async def turn(parts: Parts, session: Session) -> bool | float:
    outlook = await polls.look(session)
    if outlook.running:
        while await settle(parts, session):
            pass
    seconds = outlook.seconds
    if seconds is not None and seconds <= 0:
        return await begin(parts, session) or HELD
    longest = UNDER_WAY if outlook.running else RECHECK
    # A little later than due, and not all replicas at once: the first one leaves nothing to the others.
    due = longest if seconds is None else seconds + random.uniform(0.001, 0.02)
    return min(due, longest * random.uniform(0.8, 1.2))


async def begin(parts: Parts, session: Session) -> bool:
    """Begin calls that are due. Says whether there were any that no other replica holds."""
    async with session.transaction() as tx:
        due = await polls.take(tx, BATCH)
        if due:
            ids = ids_at(due[0].now)
            await polls.start(tx, [poll.trigger for poll in due], [next(ids) for _ in due])
    parts.publisher.publish(tx.staged)
    return bool(due)


async def settle(parts: Parts, session: Session) -> bool:
    """Take in a call that has ended, in a transaction of its own. Says whether there was one. What the database refuses
    of one is written down with its trigger, and the others go on."""
    call = None
    try:
        async with session.transaction() as tx:
            call = await polls.ended(tx)
            if call is None:
                return False
            result = await poll_results.settle(tx, call)
    except Exception as error:
        if call is None or is_transient(error):
            raise
        log.exception("run_polls.refused", trigger=call.trigger)
        async with session.transaction() as tx:
            error_text = f"{type(error).__name__}: {error}"[:1000]
            await polls.settle(tx, call.trigger, call.execution_id, None, 0, error_text)
        return True
    parts.publisher.publish(tx.staged)
    if result.error:
        log.warning("run_polls.failed", trigger=call.trigger, reason=result.error)
    return True


LOOP = Loop("run_polls", lambda settings: RECHECK, turn)
