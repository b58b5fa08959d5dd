"""A dead letter: kept with its reason, and counted when it comes again. Where it stands for a scheduled execution, that
execution fails, so that nothing waits for work that will never be done."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

import orjson

from penstock.errors import Undecodable
from penstock.language.moves import FAILED, SCHEDULED
from penstock.messaging import dead_letters, envelope
from penstock.messaging.consumer import Batch
from penstock.messaging.transports import QUEUE_HEADER, REASON_HEADER, Delivery
from penstock.store import executions, outbox, queues
from penstock.store.database import Transaction


async def handle(batch: Batch, tx: Transaction) -> None:
    lost: dict[tuple[str, str], set[UUID]] = {}
    letters = [letter_of(delivery) for delivery in batch.deliveries]
    await dead_letters.keep(tx, letters)
    for delivery, letter in zip(batch.deliveries, letters, strict=True):
        if letter.queue.startswith(queues.WORK):
            for id in await _single_out(tx, delivery, letter.queue):
                lost.setdefault((letter.queue, letter.reason), set()).add(id)
    if lost:
        await _fail(tx, lost)


async def _single_out(tx: Transaction, delivery: Delivery, queue: str) -> list[UUID]:
    """An envelope of several is tried again as singles, to find the culprit. The execution of a single is returned."""
    try:
        ids = envelope.decode(delivery.body).ids
    except Undecodable:
        return []
    if len(ids) > 1:
        scheduled = await executions.lock_scheduled(tx, ids, [queue])
        if scheduled:
            await outbox.stage(tx, queue, list(scheduled), 1)
        return []
    return ids


async def _fail(tx: Transaction, lost: Mapping[tuple[str, str], set[UUID]]) -> None:
    """Those that PostgreSQL says are waiting on the very route whose queue their letter died on."""
    # Each end locks rows and then the keys of their limits. All rows are locked first, in order: two of these transactions
    # could else wait for each other, one for a row and the other for a key.
    ids, waited_on = sorted(set().union(*lost.values())), sorted({queue for queue, _ in lost})
    waiting = await executions.lock_scheduled(tx, ids, waited_on)
    for (queue, reason), named in lost.items():
        error = orjson.dumps({"type": "DeadLetter", "message": reason}).decode()
        await executions.end(
            tx,
            sorted(id for id in named if waiting.get(id) == queue),
            [SCHEDULED],
            FAILED,
            f"dead letter: {reason}",
            error,
        )


def letter_of(delivery: Delivery) -> dead_letters.Letter:
    """What is to be kept of it. The same message again is the same letter; two events may well have the same body, unless
    it can never become an event: the same garbage again is the same letter, whatever its message id."""
    queue = str(delivery.headers.get(QUEUE_HEADER) or "unknown")
    reason = str(delivery.headers.get(REASON_HEADER) or "unknown")
    foreign = queue == queues.EVENT_RECEIVED
    return dead_letters.Letter(
        queue=queue,
        reason=reason,
        body=delivery.body,
        type=delivery.type,
        message_id=delivery.id,
        headers=dead_letters.headers_of_event(delivery) if foreign else dict(delivery.headers),
        same=(delivery.routing_key, delivery.app_id, delivery.user_id, _id_of_event(delivery))
        if foreign
        else (),
    )


def _id_of_event(delivery: Delivery) -> str | None:
    if len(delivery.body) > dead_letters.LARGEST:  # not kept whole, so never put back
        return None
    try:
        orjson.loads(delivery.body)
    except orjson.JSONDecodeError:
        return None
    return delivery.id
