"""Fires what is due: timers (retries, delays, deadlines), keys whose waiters may start now, lines whose limits changed,
inquiries that nobody answered in time. Sleeps until the next timer, or until it is woken because a nearer one may have
been set: by a worker or a client, which tell of it, or by a handler of this replica."""

from __future__ import annotations

from penstock.messaging import broadcast
from penstock.service.assembly import Parts
from penstock.store.database import Session
from penstock_executor.loops.loop import Loop

FIRE = "select messages, canceling, did, next_in from fire_due(500)"
RECHECK = 10.0
"""Seconds at the most until the next look: so late may a timer fire that nobody told of."""
SOON = 0.5
"""Seconds from what a handler did until the loop looks whether that set timers. Deadlines, most of them."""


async def turn(parts: Parts, session: Session) -> bool | float:
    async with session.transaction() as tx:
        [row] = await tx.stage_alone(FIRE)
    parts.publisher.publish(tx.staged)
    await broadcast.tell_cancelled(parts.transport, tx.canceling)
    if row["did"]:
        return True
    return RECHECK if row["next_in"] is None else min(RECHECK, max(0.02, row["next_in"]))


LOOP = Loop("timers", lambda settings: RECHECK, turn)
