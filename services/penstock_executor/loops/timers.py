"""Fires due timers (retries, delays, deadlines) and wakes keys whose waiters may start now."""

from __future__ import annotations

from penstock import messages
from penstock.database import Session
from penstock.service import Parts
from penstock_executor.loops.loop import Loop

FIRE = "select * from fire_timers(500) union all select * from wake_keys(100)"


async def turn(parts: Parts, session: Session) -> bool:
    async with session.transaction() as tx:
        rows = await tx.stage_alone(FIRE)
    parts.publisher.publish(tx.staged)
    if tx.cancelled:
        await parts.transport.broadcast(messages.CancelRequested(ids=tx.cancelled).model_dump_json().encode())
    return bool(rows)


LOOP = Loop("timers", lambda settings: 1.0, turn)
