"""The loop that seals rows of the audit, and logs the head of the chain: a log that is kept elsewhere proves the
earlier state of the chain."""

from __future__ import annotations

import structlog

from penstock.service.assembly import Parts
from penstock.store.access import audit
from penstock.store.session.database import Session
from penstock_executor.loop_runner import Loop

log = structlog.get_logger()

BATCH = 500
"""Rows that one transaction seals, at most."""


async def turn(parts: Parts, session: Session) -> bool:
    done = await audit.seal(session, BATCH)
    if done is None or not done.sealed:
        return False
    log.info("seal_audit.sealed", rows=done.sealed, head=f"{done.chain_position}:{done.chain_seal.hex()}")
    return done.sealed == BATCH


LOOP = Loop("seal_audit", lambda settings: 2.0, turn)
