"""Takes slots back from executions that were admitted and then lost every worker that could claim them, so that others
under the same limit can run. They wait at their old place until a worker comes."""

from __future__ import annotations

from penstock.service.assembly import Parts
from penstock.store import namespaces
from penstock.store.database import Session
from penstock_executor.loops.loop import Loop

RETURN = "select return_unclaimed(make_interval(secs => $1), 500) as messages"


async def turn(parts: Parts, session: Session) -> bool:
    await session.fetch(namespaces.NOTICE)
    async with session.transaction() as tx:
        await tx.stage_alone(RETURN, parts.settings.stale_threshold)
    parts.publisher.publish(tx.staged)
    return bool(tx.staged)


LOOP = Loop("unclaimed", lambda settings: settings.sweep_interval, turn)
