"""Takes work back from workers that stopped beating. Their work runs again, or ends as abandoned after too many losses."""

from __future__ import annotations

import structlog

from penstock.service.assembly import Parts
from penstock.store import processes
from penstock.store.database import Session
from penstock_executor.loop_runner import Loop

log = structlog.get_logger()

BATCH = 5
"""Workers of one transaction, each of which may have held hundreds of attempts."""


async def turn(parts: Parts, session: Session) -> bool:
    async with session.transaction() as tx:
        lost = await processes.sweep(tx, parts.settings.stale_threshold, BATCH)
        if lost:
            await processes.forget_dead(tx)
    parts.publisher.publish(tx.staged)
    for worker in lost:
        log.warning(
            "reap_workers.worker_lost",
            worker=str(worker.id),
            name=worker.name,
            age_seconds=worker.age.total_seconds(),
            recovered=worker.recovered,
        )
    return bool(lost)


LOOP = Loop("reap_workers", lambda settings: settings.sweep_interval, turn)
