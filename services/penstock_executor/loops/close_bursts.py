"""The loop that closes bursts and windows of events, and starts one execution for each.

Every replica runs it. A transaction locks the keys of bursts that can close, with SKIP LOCKED, and an executor that adds an
event locks its key too. A burst closes once no event before its end is unmatched, so a backlog of events delays it and does
not divide it.
"""

from __future__ import annotations

import random

from penstock.service.assembly import Parts
from penstock.store.events import bursts
from penstock.store.session.database import Session
from penstock_executor import burst_matches
from penstock_executor.loop_runner import Loop

BATCH = 100
"""Keys that one transaction takes, at most."""
RECHECK = 1.0
"""The maximum seconds between two polls: how late a replica may notice the first event of a burst."""
HELD = 0.1
"""Seconds until the next poll while due keys are locked, or events before their end are not matched yet."""


async def turn(parts: Parts, session: Session) -> bool | float:
    seconds = await bursts.next_due(session)
    if seconds is None:
        return RECHECK * random.uniform(0.8, 1.2)
    if seconds > 0:
        return min(seconds + random.uniform(0.001, 0.02), RECHECK)
    async with session.transaction() as tx:
        has_closed = await burst_matches.close_due(tx, BATCH)
    parts.publisher.publish(tx.staged)
    return has_closed or HELD


LOOP = Loop("close_bursts", lambda settings: RECHECK, turn)
