"""Makes the partitions of the days to come."""

from __future__ import annotations

from penstock.service.assembly import Parts
from penstock.store.database import Session
from penstock_executor.loops.loop import Loop


async def turn(parts: Parts, session: Session) -> bool:
    async with session.transaction() as tx:
        await tx.execute("set local lock_timeout = '2s'")
        await tx.fetch("select make_partitions(7)")
    return False


LOOP = Loop("partitions", lambda settings: 3600.0, turn)
