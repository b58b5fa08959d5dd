"""The loop that publishes staged messages that were not published, since the process that staged them died or the
broker was away (I8)."""

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
"""The factor for the interval if the outbox is the queue: then rows only have to be cleared, not published."""
LOOP = Loop(
    "relay_outbox",
    lambda settings: settings.relay_interval * (WITHOUT_BROKER if settings.transport == "postgres" else 1),
    turn,
)
