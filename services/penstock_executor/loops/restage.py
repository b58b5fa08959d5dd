"""Stages lost work again: requested or scheduled for a while, with no message of it anywhere; events whose rules
nobody has looked at; and workflows that nothing moves on any more.

A message can only be lost with the broker itself (its disk, a purged queue). So only queues that are empty are looked
at, oldest executions first, a bounded step each turn.
"""

from __future__ import annotations

from uuid import UUID

import structlog

from penstock.database import Session
from penstock.messages import EVENT_CREATED, EXECUTION_COMPLETED, EXECUTION_REQUESTED
from penstock.service import Parts
from penstock_executor.loops.loop import Loop

log = structlog.get_logger()

QUEUES = "select distinct queue from namespace where queue like 'work.%'"
WORKFLOWS = "select * from restage_workflows(make_interval(secs => $1), $2, 1000)"
RESTAGE = "select * from restage_lost(make_interval(secs => $1), $2, 1000, $3::text[])"
EVENTS = "select * from restage_events(make_interval(secs => $1), 1000)"
NOBODY = UUID(int=0)


async def turn(parts: Parts, session: Session) -> bool:
    await _events(parts, session)
    after = session.cache.get(("restage", "after"), NOBODY)
    if after == NOBODY and not await session.fetch("select from live limit 1"):
        return False
    queues = [EXECUTION_REQUESTED, *(row["queue"] for row in await session.fetch(QUEUES))]
    empty = [queue for queue in queues if await parts.transport.depth(queue) == 0]
    age = parts.settings.restage_age
    async with session.transaction() as tx:
        if await parts.transport.depth(EXECUTION_COMPLETED) == 0:
            await tx.stage(WORKFLOWS, age, after)
        rows = await tx.stage(RESTAGE, age, after, empty)
    parts.publisher.publish(tx.staged)
    count = sum(len(row["ids"]) for row in tx.staged)
    if count:
        log.warning("restage.lost_messages", executions=count)
    onward = [row["ids"][0] for row in rows if row["queue"] == "next"]
    session.cache["restage", "after"] = onward[0] if onward else NOBODY
    return bool(onward)


async def _events(parts: Parts, session: Session) -> None:
    if not await session.fetch("select from unmatched limit 1") or await parts.transport.depth(EVENT_CREATED):
        return
    async with session.transaction() as tx:
        await tx.stage_alone(EVENTS, parts.settings.restage_age)
    parts.publisher.publish(tx.staged)
    if tx.staged:
        log.warning("restage.lost_events", events=sum(len(row["ids"]) for row in tx.staged))


LOOP = Loop("restage", lambda settings: settings.restage_age / 2, turn)
