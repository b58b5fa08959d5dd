"""The loop that raises `penstock.execution.stuck` for work that no live worker could run for a while (PENSTOCK_STUCK_AFTER), if a
rule asks for it.

It goes through the open executions, oldest first, one bounded step in each turn of the loop.
"""

from __future__ import annotations

from uuid import UUID

from penstock.service.assembly import Parts
from penstock.store.admission import unclaimed
from penstock.store.session.database import Session
from penstock_executor.loop_runner import Loop

BATCH = 1000
START = UUID(int=0)
"""An id before the oldest execution."""


async def turn(parts: Parts, session: Session) -> bool:
    settings = parts.settings
    position = session.cache.get(("report_stuck", "after"), START)
    async with session.transaction() as tx:
        following = await unclaimed.raise_stuck(
            tx, settings.stuck_after, settings.stale_threshold, position, BATCH
        )
    parts.publisher.publish(tx.staged)
    session.cache["report_stuck", "after"] = following or START
    return following is not None


LOOP = Loop("report_stuck", lambda settings: settings.sweep_interval, turn)
