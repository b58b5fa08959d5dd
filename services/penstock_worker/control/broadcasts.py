"""The worker's reactions to broadcasts. If a broadcast is missed, the answer to the next heartbeat replaces it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from uuid import UUID

from penstock.messaging.messages import WorkParked
from penstock.messaging.transports import Transport
from penstock.messaging.worker_broadcasts import Broadcast, named, read
from penstock.store.executions import attempts
from penstock.store.session.database import Session
from penstock_worker.attempts.runner import Runner

REMEMBERED_S = 10.0
"""Seconds for which the cancellation of an execution that this worker does not have is remembered. Assigned work
arrives within that time."""
RECHECK_S = 0.5
REMEMBERED = 10_000
"""The maximum number of remembered cancellations. The answer to the next heartbeat names the others."""


async def obey_broadcasts(
    transport: Transport, session: Session, runner: Runner, parked: Callable[[str], None]
) -> None:
    """End cancelled executions, and look for parked work (`parked`). Any client of the broker can send a broadcast, so
    it is only a hint to query the database. A cancellation can arrive before its work does: a claim is committed before
    the worker learns of it."""
    subscription = await transport.listen()
    receiving = asyncio.ensure_future(subscription.receive(100))
    unheld: dict[UUID, float] = {}
    try:
        while True:
            await asyncio.wait({receiving}, timeout=RECHECK_S if unheld else None)
            broadcasts: list[Broadcast] = []
            if receiving.done():
                if not (deliveries := receiving.result()):
                    return
                broadcasts = read(deliveries)
                receiving = asyncio.ensure_future(subscription.receive(100))
            for broadcast in broadcasts:
                if isinstance(broadcast, WorkParked):
                    parked(broadcast.queue)
            now, held = time.monotonic(), runner.slots.held()
            unheld |= dict.fromkeys(named(broadcasts), now + REMEMBERED_S)
            arrived = [id for id in unheld if id in held]
            if arrived:
                requested = await attempts.canceling(session, arrived)
                runner.end_clean_up([id for id, canceling in requested.items() if canceling])
                runner.cancel(list(requested))
            remaining = [(id, until) for id, until in unheld.items() if until > now and id not in held]
            unheld = dict(remaining[-REMEMBERED:])
    finally:
        receiving.cancel()
        await subscription.close()
