"""Ends at once what is broadcast to be cancelled; what is missed here comes with the heartbeat."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import structlog

from penstock.messaging.messages import CancelRequested
from penstock.messaging.transports import Delivery, Transport
from penstock.store import attempts
from penstock.store.database import Session
from penstock_worker.runner import Runner

log = structlog.get_logger()


async def cancel_on_broadcasts(transport: Transport, session: Session, runner: Runner) -> None:
    """A broadcast is a hint: it only says when to ask the database whose end was asked for. Anybody may have sent it."""
    subscription = await transport.listen()
    try:
        while deliveries := await subscription.receive(100):
            here = [id for id in named(deliveries) if id in runner.running]
            if here:
                runner.cancel(await attempts.canceling(session, here))
    finally:
        await subscription.close()


def named(deliveries: Sequence[Delivery]) -> list[UUID]:
    """The executions that these broadcasts name, each once."""
    ids: dict[UUID, None] = {}
    for delivery in deliveries:
        try:
            ids |= dict.fromkeys(CancelRequested.model_validate_json(delivery.body).ids)
        except ValueError:
            log.debug("worker.unknown_broadcast")
    return list(ids)
