"""Ends inquiries that nobody answered in time: with their default, or as a timeout."""

from __future__ import annotations

from penstock.database import Session
from penstock.service import Parts
from penstock_executor.loops.loop import Loop

EXPIRE = "select * from expire_inquiries(100)"


async def turn(parts: Parts, session: Session) -> bool:
    async with session.transaction() as tx:
        rows = await tx.stage_alone(EXPIRE)
    parts.publisher.publish(tx.staged)
    return bool(rows)


LOOP = Loop("inquiries", lambda settings: min(5.0, settings.sweep_interval), turn)
