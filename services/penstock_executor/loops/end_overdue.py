"""Ends attempts that run past their time although their worker should have ended them.

The worker enforces the time itself and ends what does not stop within its grace; here are only the attempts that outlive
their time by twice the grace. What their workers report later is refused by the fence (I2).
"""

from __future__ import annotations

from penstock.moves import CANCELING, RUNNING, TIMEOUT
from penstock.service.assembly import Parts
from penstock.store import attempts, executions
from penstock.store.database import Session
from penstock_executor.loop_runner import Loop

BATCH = 500


async def turn(parts: Parts, session: Session) -> bool:
    async with session.transaction() as tx:
        ids = await attempts.overdue(tx, 2 * parts.settings.grace, BATCH)
        if ids:
            await executions.end(tx, ids, [RUNNING, CANCELING], TIMEOUT, "the attempt went over its time")
    parts.publisher.publish(tx.staged)
    return len(ids) == BATCH


LOOP = Loop("end_overdue", lambda settings: settings.sweep_interval, turn)
