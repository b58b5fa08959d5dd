"""Stages lost work again: requested or scheduled for a while, with no message of it anywhere; events whose rules
nobody has looked at; ends that nobody has told those who follow; and workflows that wait for a message of their own.

A message can only be lost with the broker itself (its disk, a purged queue). So only queues that are empty are looked
at, oldest executions first, a bounded step each turn.
"""

from __future__ import annotations

from uuid import UUID

import structlog

from penstock.service.assembly import Parts
from penstock.store.database import Session
from penstock.store.queues import EVENT_CREATED, EXECUTION_COMPLETED, EXECUTION_REQUESTED, WORKFLOW_STARTED
from penstock_executor.loops.loop import Loop

log = structlog.get_logger()

QUEUES = "select distinct queue from namespace where kind = 'action'"
WORKFLOWS = "select restage_workflows(make_interval(secs => $1), $2, 1000) as messages"
RESTAGE = "select messages, next from restage_lost(make_interval(secs => $1), $2, 1000, $3::text[])"
UNSEEN = (
    (
        EVENT_CREATED,
        "select from unmatched limit 1",
        "select restage_events(make_interval(secs => $1), 1000) as messages",
    ),
    (
        EXECUTION_COMPLETED,
        "select from untold limit 1",
        "select restage_ends(make_interval(secs => $1), 1000) as messages",
    ),
)
"""Queues whose messages are noted down until they are handled: whether there is any, and what stages the lost again."""
NOBODY = UUID(int=0)


async def turn(parts: Parts, session: Session) -> bool:
    for queue, some, restage in UNSEEN:
        if await session.fetch(some) and await parts.transport.depth(queue) == 0:
            await _unseen(parts, session, queue, restage)
    after = session.cache.get(("restage", "after"), NOBODY)
    if after == NOBODY and not await session.fetch("select from live limit 1"):
        return False
    queues = [EXECUTION_REQUESTED, *(row["queue"] for row in await session.fetch(QUEUES))]
    empty = [queue for queue in queues if await parts.transport.depth(queue) == 0]
    age = parts.settings.restage_age
    async with session.transaction() as tx:
        if await parts.transport.depth(WORKFLOW_STARTED) == 0:
            await tx.stage(WORKFLOWS, age, after)
        [row] = await tx.stage(RESTAGE, age, after, empty)
    parts.publisher.publish(tx.staged)
    count = sum(len(one.ids) for one in tx.staged)
    if count:
        log.warning("restage.lost_messages", executions=count)
    session.cache["restage", "after"] = row["next"] or NOBODY
    return row["next"] is not None


async def _unseen(parts: Parts, session: Session, queue: str, restage: str) -> None:
    async with session.transaction() as tx:
        await tx.stage_alone(restage, parts.settings.restage_age)
    parts.publisher.publish(tx.staged)
    if tx.staged:
        log.warning("restage.lost_messages", queue=queue, ids=sum(len(one.ids) for one in tx.staged))


LOOP = Loop("restage", lambda settings: settings.restage_age / 2, turn)
