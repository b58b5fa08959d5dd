"""Calls the functions of poll triggers when they are due, and takes in what they have found.

A call is an execution like any other, on a worker that has the function: a slow one keeps nobody waiting here. One
replica at a time holds a trigger's row, for one transaction, and a call that is under way stands in it.
"""

from __future__ import annotations

import random

import structlog

from penstock.service.assembly import Parts
from penstock.store import polls
from penstock.store.database import Session, is_transient
from penstock.store.schedules.firing import ids_at
from penstock_executor import poll_results
from penstock_executor.loops.loop import Loop

log = structlog.get_logger()

BATCH = 100
"""Calls that begin in one transaction."""
RECHECK = 10.0
"""Seconds at the most until the loop looks again: so late does a replica hear of a new poll trigger."""
UNDER_WAY = 0.5
"""The same while a call is under way, whose end nobody tells."""
HELD = 0.1
"""Seconds until the loop looks again where others hold all that is due."""


async def turn(parts: Parts, session: Session) -> bool | float:
    seen = await polls.look(session)
    if seen["running"]:
        while await settle(parts, session):
            pass
    seconds = seen["seconds"]
    if seconds is not None and seconds <= 0:
        return await begin(parts, session) or HELD
    most = UNDER_WAY if seen["running"] else RECHECK
    # A little later than due, and not all replicas at once: whoever comes first has it done.
    due = most if seconds is None else seconds + random.uniform(0.001, 0.02)
    return min(due, most * random.uniform(0.8, 1.2))


async def begin(parts: Parts, session: Session) -> bool:
    """Begin calls that are due. Says whether there were any that nobody else holds."""
    async with session.transaction() as tx:
        due = await polls.take(tx, BATCH)
        if due:
            ids = ids_at(due[0]["now"])
            await polls.start(tx, [row["trigger"] for row in due], [next(ids) for _ in due])
    parts.publisher.publish(tx.staged)
    return bool(due)


async def settle(parts: Parts, session: Session) -> bool:
    """Take in a call that has ended, in a transaction of its own. Says whether there was one. What the database refuses
    of one is written down with its trigger, and the others go on."""
    row = None
    try:
        async with session.transaction() as tx:
            row = await polls.ended(tx)
            if row is None:
                return False
            found = await poll_results.settle(tx, row)
    except Exception as error:
        if row is None or is_transient(error):
            raise
        log.exception("polls.refused", trigger=row["trigger"])
        async with session.transaction() as tx:
            said = f"{type(error).__name__}: {error}"[:1000]
            await polls.settle(tx, row["trigger"], row["running"], None, 0, said)
        return True
    parts.publisher.publish(tx.staged)
    if found.error:
        log.warning("polls.failed", trigger=row["trigger"], error=found.error)
    return True


LOOP = Loop("polls", lambda settings: RECHECK, turn)
