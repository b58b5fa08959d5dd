"""The handler of dead letters: each is stored with its reason, and counted when it arrives again. The execution's row
decides what follows: work that was never begun is staged again, with a backoff. An execution fails only if workers
cannot receive its message."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

import orjson

from penstock.errors import Undecodable
from penstock.language.moves import FAILED, SCHEDULED
from penstock.messaging import dead_letters, envelope
from penstock.messaging.consumer import Batch
from penstock.messaging.dead_letters import Letter
from penstock.messaging.transports import QUEUE_HEADER, REASON_HEADER, Delivery
from penstock.store.executions import executions
from penstock.store.outbox import outbox, queues
from penstock.store.outbox.dead_letters import OF_POLICIES
from penstock.store.session.database import Transaction
from penstock_executor.handlers import event_received

DELIVERED_TOO_OFTEN = "delivery_limit"
"""The reason of a message that came back from many workers. Each of them may have died of it."""
ROUNDS = 3
"""Times that such a message gets the full number of deliveries again before its execution fails. Connections may have
been lost because PostgreSQL did not answer, and then the message is not at fault."""
LONGEST = 300.0
"""The longest delay in seconds before a message is staged again."""
CAREFUL = 2
"""The number of deliveries after which an event is not stored any more, because storing it may have killed
processes."""


async def handle(batch: Batch, tx: Transaction) -> None:
    letters = [letter_of(delivery) for delivery in batch.deliveries]
    letters = await _store_events(tx, batch.deliveries, letters)
    counts = await dead_letters.keep(tx, letters)
    again: dict[str, dict[UUID, float]] = {}
    failed: dict[tuple[str, str], set[UUID]] = {}
    for letter, count in zip(letters, counts, strict=True):
        if not letter.queue.startswith(queues.WORK):
            continue
        ids = _ids(letter)
        if len(ids) == 1 and letter.reason == DELIVERED_TOO_OFTEN and count > ROUNDS:
            failed.setdefault((letter.queue, letter.reason), set()).update(ids)
        else:  # the ids of an envelope are staged one by one, so that the faulty one is alone
            again.setdefault(letter.queue, {}).update(dict.fromkeys(ids, _backoff(count)))
    if again or failed:
        await _settle(tx, again, failed)


async def _settle(
    tx: Transaction, again: Mapping[str, dict[UUID, float]], failed: Mapping[tuple[str, str], set[UUID]]
) -> None:
    """Stage again or fail the executions that still wait on the route of their dead letter."""
    # Each end locks rows and then the keys of their limits. So all rows are locked first, in order. Otherwise two of
    # these transactions could deadlock, one waiting for a row and the other for a key.
    ids = sorted(set().union(*again.values(), *failed.values()))
    waiting = await executions.lock_scheduled(tx, ids, sorted({*again, *(queue for queue, _ in failed)}))
    for queue, delays in again.items():
        due = {id: delay for id, delay in delays.items() if waiting.get(id) == queue}
        if due:
            await outbox.stage_later(tx, queue, due)
    for (queue, reason), named in failed.items():
        error = orjson.dumps({"type": "DeadLetter", "message": reason}).decode()
        await executions.end(
            tx,
            sorted(id for id in named if waiting.get(id) == queue),
            [SCHEDULED],
            FAILED,
            f"dead letter: {reason}",
            error,
        )


async def _store_events(
    tx: Transaction, deliveries: Sequence[Delivery], letters: Sequence[Letter]
) -> list[Letter]:
    """Store events from outside that only a policy of the broker has ended, as if they had arrived. Return the
    letters: those of stored events are only counted, and those of refused events have the reason."""
    saved = {
        id(delivery): (delivery, letter)
        for delivery, letter in zip(deliveries, letters, strict=True)
        if letter.queue == queues.EVENT_RECEIVED
        and delivery.attempts < CAREFUL
        and _by_policy(delivery, letter)
    }
    if not saved:
        return list(letters)
    batch = Batch([], [delivery for delivery, _ in saved.values()])
    await event_received.handle(batch, tx)
    refused = {id(delivery): reason for delivery, reason in batch.refused}
    return [
        letter
        if id(delivery) not in saved
        else replace(letter, reason=f"{letter.reason}; {refused[id(delivery)]}")
        if id(delivery) in refused
        else replace(letter, counted=True)
        for delivery, letter in zip(deliveries, letters, strict=True)
    ]


def _by_policy(delivery: Delivery, letter: Letter) -> bool:
    """Return True if a policy has ended this event, and not the time to live that its own producer set."""
    deaths = delivery.headers.get("x-death")
    latest = deaths[0] if isinstance(deaths, list) and deaths and isinstance(deaths[0], dict) else {}
    return letter.reason in OF_POLICIES and "original-expiration" not in latest


def _ids(letter: Letter) -> list[UUID]:
    try:
        return envelope.decode(letter.body).ids
    except Undecodable:
        return []


def _backoff(count: int) -> float:
    """Return the delay in seconds after `count` letters: 1, 2, 4 ... 300, with jitter."""
    return float(min(LONGEST, 2.0 ** min(count - 1, 9)) * random.uniform(0.5, 1.5))


def letter_of(delivery: Delivery) -> Letter:
    """Return the letter to store for a delivery. The same message again is the same letter. Two events may have the
    same body, so their tenants and ids distinguish them. A body that can never become an event is the same letter whatever its
    message id."""
    queue = str(delivery.headers.get(QUEUE_HEADER) or "unknown")
    reason = str(delivery.headers.get(REASON_HEADER) or "unknown")
    foreign = queue == queues.EVENT_RECEIVED
    return Letter(
        queue=queue,
        reason=reason,
        body=delivery.body,
        type=delivery.type,
        message_id=delivery.id,
        headers=dead_letters.headers_of_event(delivery) if foreign else dict(delivery.headers),
        same=(
            delivery.routing_key,
            delivery.app_id,
            delivery.user_id,
            delivery.headers.get("tenant"),
            _id_of_event(delivery),
        )
        if foreign
        else (),
    )


def _id_of_event(delivery: Delivery) -> str | None:
    if len(delivery.body) > dead_letters.LARGEST:  # a body that is not stored completely is never replayed
        return None
    try:
        orjson.loads(delivery.body)
    except orjson.JSONDecodeError:
        return None
    return delivery.id
