"""The loop of holds. The loop holds covered executions that wait for a worker or a limit, and releases those that no
hold covers."""

from __future__ import annotations

import time
from uuid import UUID

from penstock.service.assembly import Parts
from penstock.store.admission import holds, namespaces
from penstock.store.session.database import Session
from penstock_executor.loop_runner import Loop

BATCH = 500
EVERY_S = 1.0
NEW_S = 30.0
"""Seconds for which a hold is new. While there is a new hold, each turn of the loop looks through all open executions.
Later, only a transaction that began before the hold can have scheduled an execution that the hold covers."""
AGAIN_S = 60.0
"""Seconds after which a replica looks through all open executions again."""
FIRST = UUID(int=0)
LOOKED = "holds.looked_at"


async def turn(parts: Parts, session: Session) -> bool:
    state = await holds.state(session, NEW_S)
    if state.holds and (state.new or time.monotonic() > parts.database.cache.get(LOOKED, 0.0) + AGAIN_S):
        await _hold(parts, session)
        parts.database.cache[LOOKED] = time.monotonic()
    if state.holds or state.held:
        return await _release(parts, session)
    return False


async def _hold(parts: Parts, session: Session) -> None:
    cursor: UUID | None = FIRST
    while cursor is not None:
        async with session.transaction() as tx:
            cursor = await holds.hold_waiting(tx, cursor, BATCH)
        parts.publisher.publish(tx.staged)


async def _release(parts: Parts, session: Session) -> bool:
    async with session.transaction() as tx:
        released, is_over = await holds.release_held(tx, BATCH)
    parts.publisher.publish(tx.staged)
    if is_over:
        async with session.transaction() as tx:
            await namespaces.lock_rules(tx)
            await holds.end_holds(tx)
    return released >= BATCH or is_over


LOOP = Loop("apply_holds", lambda settings: EVERY_S, turn)
