"""The loop that takes back the slots of executions that were admitted and then lost every worker that could claim
them. Others under the same limit can start then. The executions wait at their old places until a worker comes."""

from __future__ import annotations

from penstock.service.assembly import Parts
from penstock.store.admission import namespaces, unclaimed
from penstock.store.session.database import Session
from penstock_executor.loop_runner import Loop

BATCH = 500


async def turn(parts: Parts, session: Session) -> bool:
    await namespaces.notice_workers(session)
    async with session.transaction() as tx:
        await unclaimed.return_unclaimed(tx, parts.settings.stale_threshold, BATCH)
    parts.publisher.publish(tx.staged)
    return bool(tx.staged)


LOOP = Loop("return_unclaimed", lambda settings: settings.sweep_interval, turn)
