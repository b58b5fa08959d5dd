"""Publishes what was staged and then not published, because the process that staged it died or the broker was away (I8).

Every replica does it. Rows are leased, so that relays share the work and answer a broker that takes nothing with no storm.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from uuid import UUID

import structlog

from penstock.messaging import dead_letters, envelope, messages
from penstock.messaging.transports import Transport
from penstock.store.outbox import outbox, queues
from penstock.store.outbox.outbox import Unpublished
from penstock.store.session.database import Session, is_transient, retried
from penstock.store.upkeep.scan_start import scan_start

log = structlog.get_logger()

LEASED = 30.0
"""Seconds that a relay has to publish what it took."""
RETURNS = 10
"""Times that the broker gives a message back until it is a dead letter: about a quarter of an hour. Not so with work:
its queue is there as soon as a worker of its route comes."""
UNROUTABLE = "unroutable"
STRAY_AGE = 60.0
"""PostgreSQL transport, where the outbox is the queue: seconds after which what nobody consumes is a dead letter."""

LONG_AGO = -1e9
"""A time on this process's clock that is before every message."""
SLACK = 10.0
"""Seconds that a transaction has to commit what it staged. What takes longer is found when the scan begins at the beginning
again."""


async def relay(
    transport: Transport,
    session: Session,
    age: float,
    *,
    holder: UUID | None = None,
    only: Sequence[str] | None = None,
    limit: int = 200,
) -> int:
    """Publish what is older than `age` seconds, `only` of queues that begin so. It is free for others again when the process
    `holder` has ended, or after a while. A row that the broker does not take is tried
    later and later, and in the end is a dead letter; while there is no broker nothing is held against it. Returns how many
    were settled."""
    if only is None and transport.outbox_is_queue:
        return await _clear(session, age, limit)
    since, now = scan_start(session, f"relay {only}", LONG_AGO), time.monotonic()
    rows = await outbox.lease(session, age, limit, now - since.place, LEASED, only, holder)
    if not rows:
        since.move_to(now - age - SLACK)
        return 0
    try:
        confirmed = await transport.publish(
            [messages.message(row.outbox_id, row.queue, row.ids) for row in rows]
        )
    except Exception as error:
        if not is_transient(error):
            raise
        confirmed = [False] * len(rows)
    done = [row for row, ok in zip(rows, confirmed, strict=True) if ok]
    refused = [row for row, ok in zip(rows, confirmed, strict=True) if not ok]
    serves = transport.healthy
    hopeless = [row for row in refused if serves and _hopeless(row)]

    async def settle() -> None:
        if done:
            await outbox.delete(session, _ids(done))
        if refused and not serves:
            await outbox.release(session, _ids(refused))
        elif refused:
            await outbox.refused(session, [id for id in _ids(refused) if id not in _ids(hopeless)])
            await _bury(session, hopeless)

    # Where broker and database went together, no other relay would take these until the lease runs out.
    await retried(settle, deadline=LEASED)
    return len(done) + len(hopeless)


async def offer_again(transport: Transport, session: Session, queue: str, holder: UUID | None) -> None:
    """Offer the messages of a queue again that has a consumer now. The broker may have had none until then. Messages that it
    gave back go out at once, and not when a relay comes to them."""
    await outbox.offer_again(session, queue)
    if not transport.outbox_is_queue:
        await relay(transport, session, 0.0, holder=holder, only=[queue])


def _hopeless(row: Unpublished) -> bool:
    return row.tries + 1 >= RETURNS and not queues.is_work(row.queue)


async def _clear(session: Session, age: float, limit: int) -> int:
    """Delete the rows of the outbox that no service consumes, where the outbox is the queue. Announcements were sent
    by the process that staged them, or it died before: they are best effort, and dropped. Anything else becomes a
    dead letter. (Status moves have a loop of their own.)"""
    since, now = scan_start(session, "strays", LONG_AGO), time.monotonic()
    async with session.transaction() as tx:
        rows = await outbox.lock_unconsumed(tx, age, limit, now - since.place, STRAY_AGE)
        await dead_letters.keep(tx, [_letter(row) for row in rows if not queues.is_announcement(row.queue)])
        if rows:
            await outbox.delete(tx, _ids(rows))
    if not rows:
        since.move_to(now - max(age, STRAY_AGE) - SLACK)
    return len(rows)


async def _bury(session: Session, rows: Sequence[Unpublished]) -> None:
    if not rows:
        return
    async with session.transaction() as tx:
        await dead_letters.keep(tx, [_letter(row) for row in rows])
        await outbox.delete(tx, _ids(rows))
    log.error("relay.unroutable", queues=sorted({row.queue for row in rows}), messages=len(rows))


def _letter(row: Unpublished) -> dead_letters.Letter:
    return dead_letters.Letter(
        queue=row.queue,
        reason=UNROUTABLE,
        body=row.body if row.body is not None else envelope.encode(row.queue, row.ids),
        type=row.queue,
        message_id=row.message_id or f"outbox-{row.outbox_id}",
    )


def _ids(rows: Sequence[Unpublished]) -> list[int]:
    return [row.outbox_id for row in rows]
