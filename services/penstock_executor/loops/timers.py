"""Fires what is due: timers (retries, delays, deadlines), keys whose waiters may start now, lines whose limits changed,
inquiries that nobody answered in time. Sleeps until the next timer, but never for long: another process may have set
a nearer one."""

from __future__ import annotations

from penstock import messages
from penstock.database import Session
from penstock.service import Parts
from penstock_executor.loops.loop import Loop

FIRE = "select * from fire_due(500)"
RECHECK = 2.0
"""Seconds at the most until the next look: so late may a timer fire that was set meanwhile."""


async def turn(parts: Parts, session: Session) -> bool | float:
    async with session.transaction() as tx:
        rows = await tx.stage_alone(FIRE)
    parts.publisher.publish(tx.staged)
    if tx.cancelled:
        await parts.transport.broadcast(messages.CancelRequested(ids=tx.cancelled).model_dump_json().encode())
    fired, said = rows[:-1], rows[-1]["queue"]
    if fired:
        return True
    return RECHECK if said is None else min(RECHECK, max(0.02, float(said.removeprefix("next:"))))


LOOP = Loop("timers", lambda settings: RECHECK, turn)
