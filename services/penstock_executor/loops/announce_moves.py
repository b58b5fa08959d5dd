"""The loop that publishes announcements of status moves. Announcements are staged with the moves and sent here, so that
no handler or worker waits for them."""

from __future__ import annotations

from penstock.messaging.relay import relay
from penstock.service.assembly import Parts
from penstock.store.outbox.announcements import announced
from penstock.store.outbox.queues import STATUS_MOVED
from penstock.store.session.database import Session
from penstock_executor.loop_runner import Loop

PAUSE = 0.5
"""Seconds between two turns of the loop while some status is announced."""
RECHECK = 30.0
"""Seconds after which an executor notices that a status is to be announced."""


async def turn(parts: Parts, session: Session) -> bool | float:
    if await relay(parts.transport, session, 0.0, only=[STATUS_MOVED], holder=parts.process):
        return True
    return PAUSE if await announced(session) else RECHECK


LOOP = Loop("announce_moves", lambda settings: RECHECK, turn)
