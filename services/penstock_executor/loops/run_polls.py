"""The loop that starts the calls of due poll triggers, and stores their results.

A call is an execution like any other, on a worker that has the function: a slow call blocks nothing here. One replica
at a time locks a trigger's row, for one transaction, and the row records the running call.
"""

from __future__ import annotations

import random

import structlog

from penstock.run.cut_texts import cut_end
from penstock.service.assembly import Parts
from penstock.store.events import polls
from penstock.store.schedules.firing import ids_at
from penstock.store.session.database import Session, is_transient
from penstock_executor import poll_results
from penstock_executor.loop_runner import Loop

log = structlog.get_logger()

BATCH = 100
"""Calls that one transaction begins, at most."""
RECHECK = 10.0
"""The maximum seconds between two polls: how late a replica may notice a new poll trigger."""
UNDER_WAY = 0.5
"""The maximum seconds between two polls while a call is running, since no message announces its end."""
HELD = 0.1
"""Seconds until the next poll if other replicas have locked all due triggers."""


async def turn(parts: Parts, session: Session) -> bool | float:
    outlook = await polls.look(session)
    if outlook.running:
        while await settle(parts, session):
            pass
    seconds = outlook.seconds
    if seconds is not None and seconds <= 0:
        return await begin(parts, session) or HELD
    longest = UNDER_WAY if outlook.running else RECHECK
    # Wake a little after the due instant, and at another moment in each replica: the first replica usually begins all
    # calls.
    due = longest if seconds is None else seconds + random.uniform(0.001, 0.02)
    return min(due, longest * random.uniform(0.8, 1.2))


async def begin(parts: Parts, session: Session) -> bool:
    """Begin due calls. Return False if there were none, or other replicas have locked all of them."""
    async with session.transaction() as tx:
        due = await polls.take(tx, BATCH)
        if due:
            ids = ids_at(due[0].now)
            await polls.start(tx, [poll.trigger for poll in due], [next(ids) for _ in due])
    parts.publisher.publish(tx.staged)
    return bool(due)


async def settle(parts: Parts, session: Session) -> bool:
    """Store the result of a call that has ended, in a transaction of its own. Return False if there is none. If the
    database rejects a result, the error is stored with the trigger, and other calls go on."""
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
            error_text = cut_end(f"{type(error).__name__}: {error}", 1000)
            await polls.settle(tx, call.trigger, call.execution_id, None, 0, error_text)
        return True
    parts.publisher.publish(tx.staged)
    if result.error:
        log.warning("run_polls.failed", trigger=call.trigger, reason=result.error)
    return True


LOOP = Loop("run_polls", lambda settings: RECHECK, turn)
