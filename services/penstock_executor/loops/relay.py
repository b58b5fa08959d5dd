"""Publishes what was staged and then not published, because whoever staged it died or the broker was away (I8)."""

from __future__ import annotations

from penstock.database import Session
from penstock.relay import relay
from penstock.service import Parts
from penstock_executor.loops.loop import Loop

STRAYS = 60.0
"""PostgreSQL transport, where the outbox is the queue: seconds after which what nobody consumes is cleared away."""


async def turn(parts: Parts, session: Session) -> bool:
    age = STRAYS if parts.transport.name == "postgres" else parts.settings.relay_age
    return await relay(parts.transport, session, age) > 0


LOOP = Loop(
    "relay", lambda settings: STRAYS if settings.transport == "postgres" else settings.relay_interval, turn
)
