"""The publication of staged messages that were not published, because the process that staged them died or the broker
was away (I8).

Every replica runs it. Rows are leased, so that relays share the work. Failed rows are retried with a backoff, so that
a broker that accepts nothing is not flooded.
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
"""Seconds that a relay has to publish the rows that it leased."""
RETURNS = 10
"""Times that the broker may return a message before it becomes a dead letter: about a quarter of an hour. Work is
exempt, since its queue exists as soon as a worker of its route starts."""
UNROUTABLE = "unroutable"
STRAY_AGE = 60.0
"""Seconds after which a message that no service consumes becomes a dead letter. Only for the PostgreSQL transport,
where the outbox is the queue."""

LONG_AGO = -1e9
"""An instant on this process's clock before every message."""
SLACK = 10.0
"""Seconds that a transaction has to commit its staged messages. Later ones are found when the scan starts at the
beginning again."""


async def relay(
    transport: Transport,
    session: Session,
    age: float,
    *,
    holder: UUID | None = None,
    only: Sequence[str] | None = None,
    limit: int = 200,
) -> int:
    """Publish at most `limit` messages that are older than `age` seconds; with `only`, those of queues with these
    prefixes. The lease ends after LEASED seconds, or when the process `holder` has ended. A message that the broker
    does not accept is retried with a backoff, and finally becomes a dead letter. While there is no broker, no try is
    counted. Return the number of settled messages."""
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

    # Retried, since the database may be away together with the broker: no other relay takes these rows before the
    # lease ends.
    await retried(settle, deadline=LEASED)
    return len(done) + len(hopeless)


async def offer_again(transport: Transport, session: Session, queue: str, holder: UUID | None) -> None:
    """Publish the returned messages of a queue at once, since the queue has a consumer now: before that, the broker
    may have had no such queue."""
    await outbox.offer_again(session, queue)
    if not transport.outbox_is_queue:
        await relay(transport, session, 0.0, holder=holder, only=[queue])


def _hopeless(row: Unpublished) -> bool:
    return row.tries + 1 >= RETURNS and not queues.is_work(row.queue)


async def _clear(session: Session, age: float, limit: int) -> int:
    """Delete outbox rows that no service consumes, for the PostgreSQL transport. Announcements are dropped: the
    process that staged them has sent them, or died before, and they are best effort. All others become dead letters.
    Another loop handles status moves."""
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
