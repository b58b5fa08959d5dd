"""The loop that makes partitions for the next days."""

from __future__ import annotations

from penstock.service.assembly import Parts
from penstock.store.schema import partitions
from penstock.store.session.database import Session
from penstock_executor.loop_runner import Loop

AHEAD = 7
"""Days for which partitions are made ahead."""


async def turn(parts: Parts, session: Session) -> bool:
    async with session.transaction() as tx:
        await partitions.make(tx, AHEAD)
    return False


LOOP = Loop("make_partitions", lambda settings: 3600.0, turn)
