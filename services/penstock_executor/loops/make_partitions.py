"""The loop that makes partitions for the next days."""

from __future__ import annotations

import asyncio
import random

from penstock.service.assembly import Parts
from penstock.store.schema import partitions
from penstock.store.session.database import Session
from penstock.store.upkeep import retention
from penstock_executor.loop_runner import Loop

AHEAD = 7
"""Days for which partitions are made ahead."""
TRIES = 10
"""Times that a turn of the loop tries to lock a table. Each try waits a moment only, since other sessions wait behind
it."""
PAUSE = 0.2
"""The mean pause in seconds between two tries."""
AGAIN = 30.0
"""Seconds until the next turn of the loop if a session reads a table for a long time."""


async def turn(parts: Parts, session: Session) -> bool | float:
    results = [await make(session, table) for table in retention.PARTITIONED]
    return False if all(results) else AGAIN


async def make(session: Session, table: str) -> bool:
    """Make the partitions of a table. Return False if another session uses the table for a long time."""
    for _ in range(TRIES):
        if await partitions.make(session, table, AHEAD):
            return True
        await asyncio.sleep(PAUSE * random.uniform(0.5, 1.5))
    return False


LOOP = Loop("make_partitions", lambda settings: 3600.0, turn)
