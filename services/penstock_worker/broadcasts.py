"""The worker's reactions to broadcasts. A missed broadcast is replaced by the next heartbeat's answer."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import structlog
from pydantic import TypeAdapter

from penstock.messaging.messages import CancelRequested, WorkParked
from penstock.messaging.transports import Delivery, Transport
from penstock.store import attempts
from penstock.store.database import Session
from penstock_worker.runner import Runner

log = structlog.get_logger()

Told = CancelRequested | WorkParked
TOLD: TypeAdapter[Told] = TypeAdapter(Told)


async def obey_broadcasts(transport: Transport, session: Session, runner: Runner) -> None:
    """End what is to be cancelled, and look for work that was parked. A broadcast is a hint: it only says when to ask the
    database, whose end was asked for, say. Anybody may have sent it."""
    subscription = await transport.listen()
    try:
        while deliveries := await subscription.receive(100):
            told = read(deliveries)
            for one in told:
                if isinstance(one, WorkParked):
                    runner.parked.parked(one.queue)
            held = runner.slots.held()
            here = [id for id in named(told) if id in held]
            if here:
                runner.cancel(await attempts.canceling(session, here))
    finally:
        await subscription.close()


def read(deliveries: Sequence[Delivery]) -> list[Told]:
    """Parse the broadcasts to workers."""
    told: list[Told] = []
    for delivery in deliveries:
        try:
            told.append(TOLD.validate_json(delivery.body))
        except ValueError:
            log.debug("worker.unknown_broadcast")
    return told


def named(told: Sequence[Told]) -> list[UUID]:
    """The executions that are to be cancelled, each once."""
    return list(dict.fromkeys(id for one in told if isinstance(one, CancelRequested) for id in one.ids))
