"""The outbox as a queue, for the PostgreSQL transport. A delivery is a lease on a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from penstock.store.session.database import RELAXED, Session, Transaction
from penstock.store.session.rows import rows_as


@dataclass(slots=True)
class Taken:
    """A message that was taken. It has been due for `age` seconds; `size` is the bytes of its body, 0 without one.
    `headers` is JSON."""

    id: int
    ids: list[UUID]
    body: bytes | None
    message_id: str | None
    type: str | None
    headers: str | None
    tries: int
    age: float
    size: int


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message with a body that is put into a queue. `headers` is JSON."""

    queue: str
    body: bytes
    message_id: str | None
    type: str | None
    headers: str


TAKE = f"""
with found as (
    select id, due_at, coalesce(octet_length(body), 0) as size from outbox where queue = $1
        and due_at between statement_timestamp() - make_interval(secs => $4) and statement_timestamp()
    order by due_at, id limit $2 for update skip locked
), taken as (
    select id, due_at, size, sum(size) over (order by due_at, id) - size as before from found
)
update outbox o set due_at = clock_timestamp() + make_interval(secs => $3), tries = tries + 1, holder = $6
from taken t where o.id = t.id and t.before < $5 and {RELAXED}
returning o.id, o.ids, o.body, o.message_id, o.type, o.headers, o.tries,
    extract(epoch from statement_timestamp() - t.due_at)::float8 as age, t.size
"""


async def take(
    session: Session, queue: str, limit: int, lease: float, reach: float, max_bytes: int, holder: UUID | None
) -> list[Taken]:
    """Lease at most `limit` messages of a queue that became due within `reach` seconds. The lease lasts `lease`
    seconds, or until the process `holder` has ended (None: a process without heartbeats). The bodies have at most
    `max_bytes` bytes, apart from the last message. If the commit is lost, the messages are delivered again."""
    return rows_as(Taken, await session.fetch(TAKE, queue, limit, lease, reach, max_bytes, holder))


PUT = """
insert into outbox (queue, ids, body, message_id, type, headers)
select q, '{}', b, m, t, h::jsonb from unnest($1::text[], $2::bytea[], $3::text[], $4::text[], $5::text[])
    as x (q, b, m, t, h)
"""


async def put(db: Session | Transaction, messages: Sequence[NewMessage]) -> None:
    """Put messages with bodies into their queues."""
    await db.fetch(
        PUT,
        [m.queue for m in messages],
        [m.body for m in messages],
        [m.message_id for m in messages],
        [m.type for m in messages],
        [m.headers for m in messages],
    )


WAITING = """
select q from unnest($1::text[], $2::float8[]) as x (q, reach)
where exists (select from outbox where queue = q
              and due_at between statement_timestamp() - make_interval(secs => reach) and statement_timestamp())
"""


async def waiting(session: Session, queues: Sequence[str], reach: Sequence[float]) -> list[str]:
    """Return the queues with a message that became due within the queue's `reach` (seconds)."""
    return [row["q"] for row in await session.fetch(WAITING, queues, reach)]


DEPTH = "select count(*) as count from outbox where queue = $1 and due_at <= clock_timestamp()"


async def depth(session: Session, queue: str) -> int:
    """Return the number of messages of a queue that are due."""
    return int((await session.fetch(DEPTH, queue))[0]["count"])
