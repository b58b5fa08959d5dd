"""Publishes what was staged and then not published, because whoever staged it died or the broker was away (I8)."""

from __future__ import annotations

from penstock.database import Session
from penstock.service import Parts
from penstock_executor.loops.loop import Loop


async def turn(parts: Parts, session: Session) -> bool:
    if parts.transport.name == "postgres":
        return False  # the outbox is the queue
    return await parts.publisher.relay(parts.settings.relay_age) > 0


LOOP = Loop("relay", lambda settings: settings.relay_interval, turn)
