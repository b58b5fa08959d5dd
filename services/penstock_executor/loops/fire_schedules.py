"""The loop that fires due schedules, starts fires that waited for the previous run, and settles fires after their
run.

Every replica runs it. One transaction at a time takes a schedule's row, with SKIP LOCKED. So if a replica dies, the
schedule stays due, and another replica fires it. The loop sleeps until the next schedule is due, or until a change of
schedules wakes it. It also polls every few seconds, since that broadcast may be missed.
"""

from __future__ import annotations

import random
import time

import structlog

from penstock.messaging import broadcast
from penstock.run.cut_texts import cut_end
from penstock.service.assembly import Parts
from penstock.store.schedules import fire_ends, firing, statements
from penstock.store.session.database import Session, is_transient
from penstock_executor.loop_runner import Loop
from penstock_executor.schedule_metrics import tally

log = structlog.get_logger()

BATCH = 500
"""Schedules that one transaction fires, at most."""
RECHECK = 10.0
"""The maximum seconds between two polls: how late a replica may notice a new schedule if it missed the broadcast."""
WAITING = 0.5
"""The maximum seconds between two polls while fires wait for the previous run."""
SETTLE = 5.0
"""Seconds between two turns of the loop in which ended fires are settled."""
HELD = 0.1
"""Seconds until the next poll if other replicas have locked all due schedules."""


async def turn(parts: Parts, session: Session) -> bool | float:
    outlook = await statements.look(session)
    if outlook.waiting:
        await start_waiting(parts, session)
    has_more = bool(outlook.open) and await settle(parts, session)
    seconds = outlook.seconds
    if seconds is not None and seconds <= 0:
        return await fire(parts, session) or HELD
    if has_more:
        return True
    # Wake a little after the due instant, and at another moment in each replica: the first replica usually fires all.
    due = RECHECK if seconds is None else seconds + random.uniform(0.001, 0.02)
    return min(due, WAITING if outlook.waiting else RECHECK * random.uniform(0.8, 1.2))


async def fire(parts: Parts, session: Session, ref: str | None = None) -> bool:
    """Fire a batch. If the database rejects it, its schedules are fired one by one, so that only the faulty one is
    put aside."""
    try:
        async with session.transaction() as tx:
            fired = await firing.fire_due(tx, BATCH if ref is None else 1, ref)
    except Exception as error:
        if is_transient(error):
            raise
        if ref is not None:
            log.exception("fire_schedules.put_aside", schedule=ref)
            async with session.transaction() as tx:
                await statements.put_aside(
                    tx, ref, cut_end(f"{type(error).__name__}: {error}", 500), firing.ASIDE
                )
            return True
        async with session.transaction() as tx:
            refs = [row.ref for row in await statements.lock_due(tx, BATCH)]
        for due_ref in refs:
            await fire(parts, session, due_ref)
        return bool(refs)
    parts.publisher.publish(tx.staged)
    tally(parts).add(fired)
    if fired.missed:
        log.warning("fire_schedules.missed", fires=fired.missed, statuses=fired.counts)
    return bool(fired.schedules)


async def start_waiting(parts: Parts, session: Session) -> None:
    """Request the end of runs that are to be replaced, and start fires that waited for a run that has ended."""
    async with session.transaction() as tx:
        await statements.cancel_replaced(tx)
    parts.publisher.publish(tx.staged)
    await broadcast.cancel_requested(parts.transport, tx.canceling)
    async with session.transaction() as tx:
        await statements.start_waiting(tx, BATCH)
    parts.publisher.publish(tx.staged)


async def settle(parts: Parts, session: Session) -> bool:
    """Settle a batch, every few seconds at most unless there is more to do. Return True if there is more."""
    if time.monotonic() < session.cache.get("schedules.settle", 0.0):
        return False
    async with session.transaction() as tx:
        settled, recovered = await fire_ends.settle(tx, 2 * BATCH)
    parts.publisher.publish(tx.staged)
    if recovered:
        tally(parts).recoveries += recovered
        log.warning("fire_schedules.recovered", fires=recovered)
    has_more = settled == 2 * BATCH
    pause = 0.0 if has_more else SETTLE * random.uniform(0.8, 1.2)
    session.cache["schedules.settle"] = time.monotonic() + pause
    return has_more


LOOP = Loop("fire_schedules", lambda settings: 1.0, turn)
