"""Publishes what was staged and then not published, because whoever staged it died or the broker was away (I8).

Every replica does it. Rows are leased, so that relays share the work and answer a broker that takes nothing with no storm.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import structlog

from penstock.messaging import dead_letters, messages
from penstock.messaging.transports import MOVED, STATUS, Transport
from penstock.store import queues
from penstock.store.database import Row, Session, is_transient
from penstock.store.scan_start import scan_start

log = structlog.get_logger()

LEASED = 30.0
"""Seconds that a relay has to publish what it took."""
RETURNS = 10
"""Times that the broker gives a message back until it is a dead letter: about a quarter of an hour. Not so with work:
its queue is there as soon as a worker of its route comes."""
UNROUTABLE = "unroutable"
STRAYS = 60.0
"""PostgreSQL transport, where the outbox is the queue: seconds after which what nobody consumes is a dead letter."""

LONG_AGO = -1e9
"""A time of this process's clock before all that is looked for."""
SLACK = 10.0
"""Seconds that a transaction has to commit what it staged, so that it is not first found when all is looked at again."""

SINCE = "due_at >= now() - make_interval(secs => $3)"
WAITING = f"""
with recursive found (queue) as (
    (select queue from outbox where {SINCE} order by queue limit 1)
    union all
    select (select queue from outbox where queue > f.queue and {SINCE} order by queue limit 1) from found f
    where f.queue is not null
)
select queue from found where queue is not null
"""
"""The queues that have messages: as many steps in the index as there are queues, however many messages wait."""
LEASE = f"""
with old as (
    select o.id from (select * from ({WAITING}) w where $5::text[] is null or queue ^@ any($5)) q
    cross join lateral (
        select id from outbox
        where queue = q.queue and {SINCE} and due_at <= now() - make_interval(secs => $1)
        order by due_at limit $2 for update skip locked
    ) o
    limit $2
)
update outbox o set due_at = clock_timestamp() + make_interval(secs => $4)
from old where o.id = old.id
returning o.id as outbox_id, o.queue, o.ids, o.tries, o.body, o.message_id
"""
DELETE = "delete from outbox where id = any($1::bigint[])"
RELEASE = "update outbox set due_at = clock_timestamp() where id = any($1::bigint[])"
REFUSED = """
update outbox set tries = tries + 1, error = 'the broker did not take it',
    due_at = clock_timestamp() + make_interval(secs => least(300, 2 ^ least(tries, 8)) * (0.5 + random()))
where id = any($1::bigint[])
"""
STRAY = f"""
select o.id as outbox_id, o.queue, o.ids, o.body, o.message_id from ({WAITING}) q
cross join lateral (
    select * from outbox
    where queue = q.queue and {SINCE}
        and due_at <= now() - make_interval(secs => case when q.queue ^@ any($5::text[]) then $1 else {STRAYS} end)
    order by due_at limit $2 for update skip locked
) o
where q.queue <> all($4::text[]) and q.queue not like 'work.%' and q.queue not like '{MOVED}%'
limit $2
"""


async def relay(
    transport: Transport,
    session: Session,
    age: float,
    *,
    only: Sequence[str] | None = None,
    limit: int = 200,
) -> int:
    """Publish what is older than `age` seconds, `only` of queues that begin so. A row that the broker does not take is tried
    later and later, and in the end is a dead letter; while there is no broker nothing is held against it. Returns how many
    were settled."""
    if only is None and getattr(transport, "stores", False):
        return await _clear(session, age, limit)
    since, now = scan_start(session, f"relay {only}", LONG_AGO), time.monotonic()
    rows = await session.fetch(LEASE, age, limit, now - since.place, LEASED, only)
    if not rows:
        since.move_to(now - age - SLACK)
        return 0
    try:
        confirmed = await transport.publish(
            [messages.message(row["outbox_id"], row["queue"], row["ids"]) for row in rows]
        )
    except Exception as error:
        if not is_transient(error):
            raise
        confirmed = [False] * len(rows)
    done = [row for row, ok in zip(rows, confirmed, strict=True) if ok]
    refused = [row for row, ok in zip(rows, confirmed, strict=True) if not ok]
    if done:
        await session.fetch(DELETE, _ids(done))
    if refused and not transport.healthy:
        await session.fetch(RELEASE, _ids(refused))
    elif refused:
        hopeless = [row for row in refused if _hopeless(row)]
        await session.fetch(REFUSED, [id for id in _ids(refused) if id not in _ids(hopeless)])
        await _bury(session, hopeless)
        return len(done) + len(hopeless)
    return len(done)


def _hopeless(row: Row) -> bool:
    return row["tries"] + 1 >= RETURNS and not row["queue"].startswith(queues.WORK)


async def _clear(session: Session, age: float, limit: int) -> int:
    """Where the outbox is the queue: what nobody consumes. What was for whoever listened is told by now, or whoever
    should have told it died: there is nobody to tell it later. (Status moves have a loop of their own.)"""
    since, now = scan_start(session, "strays", LONG_AGO), time.monotonic()
    async with session.transaction() as tx:
        rows = await tx.fetch(STRAY, age, limit, now - since.place, list(queues.QUEUES), list(STATUS))
        for row in rows:
            if not row["queue"].startswith(STATUS):
                await dead_letters.keep(tx, _letter(row))
        if rows:
            await tx.fetch(DELETE, _ids(rows))
    if not rows:
        since.move_to(now - max(age, STRAYS) - SLACK)
    return len(rows)


async def _bury(session: Session, rows: Sequence[Row]) -> None:
    if not rows:
        return
    async with session.transaction() as tx:
        for row in rows:
            await dead_letters.keep(tx, _letter(row))
        await tx.fetch(DELETE, _ids(rows))
    log.error("relay.unroutable", queues=sorted({row["queue"] for row in rows}), messages=len(rows))


def _letter(row: Row) -> dead_letters.Letter:
    return dead_letters.Letter(
        queue=row["queue"],
        reason=UNROUTABLE,
        body=row["body"] if row["body"] is not None else messages.encode(row["queue"], row["ids"]),
        type=row["queue"],
        message_id=row["message_id"] or f"outbox-{row['outbox_id']}",
    )


def _ids(rows: Sequence[Row]) -> list[int]:
    return [row["outbox_id"] for row in rows]
