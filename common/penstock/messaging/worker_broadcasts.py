"""The broadcasts that concern work: cancellations, and work that was parked. A broadcast is only a hint to ask the
database, as any client of the broker may have sent it."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import structlog
from pydantic import TypeAdapter

from penstock.messaging.messages import CancelRequested, WorkParked
from penstock.messaging.transports import Delivery

log = structlog.get_logger()

Broadcast = CancelRequested | WorkParked
BROADCAST: TypeAdapter[Broadcast] = TypeAdapter(Broadcast)


def read(deliveries: Sequence[Delivery]) -> list[Broadcast]:
    """Parse the broadcasts to workers."""
    broadcasts: list[Broadcast] = []
    for delivery in deliveries:
        try:
            broadcasts.append(BROADCAST.validate_json(delivery.body))
        except ValueError:
            log.debug("worker.unknown_broadcast")
    return broadcasts


def named(broadcasts: Sequence[Broadcast]) -> list[UUID]:
    """Return the executions that the broadcasts ask to cancel, each once."""
    return list(
        dict.fromkeys(
            id for broadcast in broadcasts if isinstance(broadcast, CancelRequested) for id in broadcast.ids
        )
    )
