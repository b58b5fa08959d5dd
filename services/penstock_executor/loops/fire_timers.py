"""The loop that does due work: timers (retries, delays, deadlines), wake rows of keys, lanes with changed limits, and
inquiries past their deadline. The loop sleeps until the next timer is due. A worker or a client that sets an earlier
timer broadcasts that, and a handler of this replica wakes the loop directly."""

from __future__ import annotations

from penstock.messaging import broadcast
from penstock.service.assembly import Parts
from penstock.store.session.database import Session
from penstock.store.upkeep import timers
from penstock_executor.loop_runner import Loop

BATCH = 500
RECHECK = 10.0
"""The maximum seconds between two turns of the loop: how late a timer may fire if its broadcast was missed."""
SOONEST = 0.02
"""The minimum seconds between two turns of the loop."""
AFTER_A_BATCH = 0.5
"""Seconds from a handler's batch until the loop checks for new timers, which are mostly deadlines."""


async def turn(parts: Parts, session: Session) -> bool | float:
    async with session.transaction() as tx:
        due = await timers.fire_due(tx, BATCH)
    parts.publisher.publish(tx.staged)
    await broadcast.cancel_requested(parts.transport, tx.canceling)
    if due.fired:
        return True
    return RECHECK if due.next_in is None else min(RECHECK, max(SOONEST, due.next_in))


LOOP = Loop("fire_timers", lambda settings: RECHECK, turn)
