"""Takes work back from workers that stopped beating. Their work runs again, or ends as abandoned after too many losses."""

from __future__ import annotations

import structlog

from penstock.service.assembly import Parts
from penstock.store.database import Session
from penstock_executor.loops.loop import Loop

log = structlog.get_logger()

SWEEP = "select worker, name, age, moved, messages from sweep(make_interval(secs => $1), 5)"
FORGET = "delete from process where state = 'dead' and beat_at < clock_timestamp() - interval '1 day'"


async def turn(parts: Parts, session: Session) -> bool:
    async with session.transaction() as tx:
        rows = await tx.stage(SWEEP, parts.settings.stale_threshold)
        if rows:
            await tx.fetch(FORGET)
    parts.publisher.publish(tx.staged)
    for row in rows:
        log.warning(
            "sweep.worker_lost",
            worker=str(row["worker"]),
            name=row["name"],
            age_seconds=row["age"].total_seconds(),
            recovered=len(row["moved"]),
        )
    return bool(rows)


LOOP = Loop("sweep", lambda settings: settings.sweep_interval, turn)
