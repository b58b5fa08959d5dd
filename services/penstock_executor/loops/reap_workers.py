"""The loop that takes work back from processes that have ended or stopped sending heartbeats. That work runs again,
or ends as abandoned after too many losses. Messages that they staged and may not have published are published."""

from __future__ import annotations

import structlog

from penstock.messaging.relay import relay
from penstock.service.assembly import Parts
from penstock.store.processes import processes
from penstock.store.session.database import Session
from penstock_executor.loop_runner import Loop

log = structlog.get_logger()

LOOK = 1.0
"""Seconds between two turns of the loop, which cost one statement each."""
GRACE = 3.0
"""Seconds for which the lock of a process must be free until the process counts as ended. A process that was cut off
takes its lock again in that time."""


async def turn(parts: Parts, session: Session) -> bool:
    settings = parts.settings
    async with session.transaction() as tx:
        process = await processes.reap(tx, settings.lost_after, settings.silence, GRACE)
    if process is None:
        return False
    parts.publisher.publish(tx.staged)
    log.warning(
        "reap_workers.process_lost",
        process_id=str(process.id),
        name=process.name,
        reason=process.reason,
        age_seconds=process.age.total_seconds(),
        recovered=process.recovered,
    )
    parts.metrics.processes_lost.inc()
    parts.metrics.recovered.inc(process.recovered)
    await relay(parts.transport, session, min(GRACE, settings.relay_age), holder=parts.process)
    await processes.forget_dead(session)
    return True


LOOP = Loop("reap_workers", lambda settings: min(LOOK, settings.sweep_interval), turn)
