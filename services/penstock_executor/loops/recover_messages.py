"""The loop that stages work again that waits for a lost message. That work is executions that have been requested or
scheduled for a while, and workflows that wait for their own message. It is also events that no executor has matched,
and ends that were not delivered to their followers.

A message can only be lost with the broker itself (its disk, a purged queue). So the loop handles only queues that are
empty, oldest executions first, one bounded step in each turn of the loop.

On the same way the loop restores claims of running attempts. Without its claim, an attempt that its worker has lost would
run for good.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from uuid import UUID

import structlog

from penstock.service.assembly import Parts
from penstock.store.outbox import lost_messages
from penstock.store.outbox.queues import (
    EVENT_CREATED,
    EXECUTION_COMPLETED,
    EXECUTION_REQUESTED,
    WORKFLOW_STARTED,
)
from penstock.store.processes import processes
from penstock.store.session.database import Session, Transaction
from penstock_executor.loop_runner import Loop

log = structlog.get_logger()

BATCH = 1000
START = UUID(int=0)
"""An id before the oldest execution."""
Restage = Callable[[Transaction, float, int], Awaitable[None]]


async def turn(parts: Parts, session: Session) -> bool:
    if await lost_messages.any_unmatched_event(session):
        await _restage_noted(parts, session, EVENT_CREATED, lost_messages.restage_events)
    if await lost_messages.any_untold_end(session):
        await _restage_noted(parts, session, EXECUTION_COMPLETED, lost_messages.restage_ends)
    position = session.cache.get(("recover_messages", "after"), START)
    if position == START and not await lost_messages.any_open_execution(session):
        return False
    following = await _restage_open(parts, session, position)
    session.cache["recover_messages", "after"] = following or START
    return following is not None


async def _restage_noted(parts: Parts, session: Session, queue: str, restage: Restage) -> None:
    """Stage the recorded items of this queue again if the queue is empty. Items are recorded until they are handled,
    so the messages of the remaining ones are lost."""
    if await parts.transport.depth(queue):
        return
    async with session.transaction() as tx:
        await restage(tx, parts.settings.restage_age, BATCH)
    parts.publisher.publish(tx.staged)
    _tell(parts, tx, queue)


async def _restage_open(parts: Parts, session: Session, position: UUID) -> UUID | None:
    """Handle the next open executions, and the workflows among them. Return the id to continue after; None at the
    end."""
    queues = [EXECUTION_REQUESTED, *await lost_messages.queues_of_work(session)]
    empty = [queue for queue in queues if await parts.transport.depth(queue) == 0]
    none_started = await parts.transport.depth(WORKFLOW_STARTED) == 0
    age = parts.settings.restage_age
    if restored := await processes.restore_claims(session, position, BATCH):
        log.warning("recover_messages.claims_restored", executions=restored)
    async with session.transaction() as tx:
        if none_started:
            await lost_messages.restage_workflows(tx, age, position, BATCH)
        following = await lost_messages.restage_executions(tx, age, position, BATCH, empty)
    parts.publisher.publish(tx.staged)
    _tell(parts, tx)
    return following


def _tell(parts: Parts, tx: Transaction, queue: str | None = None) -> None:
    count = sum(len(message.ids) for message in tx.staged)
    for message in tx.staged:
        parts.metrics.restaged.labels(message.queue).inc(len(message.ids))
    if count:
        log.warning("recover_messages.restaged", queue=queue, executions=count)


LOOP = Loop("recover_messages", lambda settings: settings.restage_age / 2, turn)
