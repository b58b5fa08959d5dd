"""The loop that ends executions that no worker has claimed within the setting `schedule_to_start`, if that is set. An
action's own timeout (`timeouts.schedule_to_start`) replaces it, and is enforced by a timer.

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
    longest = parts.settings.schedule_to_start
    if longest is None:
        return False
    position = session.cache.get(("end_unclaimed", "after"), START)
    async with session.transaction() as tx:
        following = await unclaimed.end_unclaimed(tx, longest, position, BATCH)
    parts.publisher.publish(tx.staged)
    session.cache["end_unclaimed", "after"] = following or START
    return following is not None


LOOP = Loop("end_unclaimed", lambda settings: settings.sweep_interval, turn)
