"""The worker's reactions to broadcasts. If a broadcast is missed, the answer to the next heartbeat replaces it."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import structlog
from pydantic import TypeAdapter

from penstock.messaging.messages import CancelRequested, WorkParked
from penstock.messaging.transports import Delivery, Transport
from penstock.store.executions import attempts
from penstock.store.session.database import Session
from penstock_worker.attempts.runner import Runner

log = structlog.get_logger()

Told = CancelRequested | WorkParked
TOLD: TypeAdapter[Told] = TypeAdapter(Told)


async def obey_broadcasts(transport: Transport, session: Session, runner: Runner) -> None:
    """End cancelled executions, and look for parked work. A broadcast is only a hint to ask the database, as any
    client of the broker may have sent it."""
    subscription = await transport.listen()
    try:
        while deliveries := await subscription.receive(100):
            broadcasts = read(deliveries)
            for broadcast in broadcasts:
                if isinstance(broadcast, WorkParked):
                    runner.parked.parked(broadcast.queue)
            held = runner.slots.held()
            running = [id for id in named(broadcasts) if id in held]
            if running:
                runner.cancel(await attempts.canceling(session, running))
    finally:
        await subscription.close()


def read(deliveries: Sequence[Delivery]) -> list[Told]:
    """Parse the broadcasts to workers."""
    broadcasts: list[Told] = []
    for delivery in deliveries:
        try:
            broadcasts.append(TOLD.validate_json(delivery.body))
        except ValueError:
            log.debug("worker.unknown_broadcast")
    return broadcasts


def named(broadcasts: Sequence[Told]) -> list[UUID]:
    """Return the executions that the broadcasts ask to cancel, each once."""
    return list(
        dict.fromkeys(
            id for broadcast in broadcasts if isinstance(broadcast, CancelRequested) for id in broadcast.ids
        )
    )
