"""Publishes what was staged and then not published, because the process that staged it died or the broker was away (I8)."""

from __future__ import annotations

from penstock.messaging.relay import relay
from penstock.service.assembly import Parts
from penstock.store.session.database import Session
from penstock_executor.loop_runner import Loop


async def turn(parts: Parts, session: Session) -> bool:
    settled = await relay(parts.transport, session, parts.settings.relay_age, holder=parts.process)
    parts.metrics.relayed.inc(settled)
    return settled > 0


WITHOUT_BROKER = 6
"""Times as long between two turns where the outbox is the queue: there is nothing to publish then, only to clear."""
LOOP = Loop(
    "relay_outbox",
    lambda settings: settings.relay_interval * (WITHOUT_BROKER if settings.transport == "postgres" else 1),
    turn,
)
