"""The outbox: messages that were staged in the transaction of a change, until they are published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from penstock.store.outbox import queues
from penstock.store.session.database import RELAXED, Session, Transaction
from penstock.store.session.rows import rows_as


@dataclass(slots=True)
class Unpublished:
    """A staged message that was not published yet. `body` is None for an envelope, which only has `ids`."""

    outbox_id: int
    queue: str
    ids: list[UUID]
    tries: int
    body: bytes | None
    message_id: str | None


RECENT = "due_at >= now() - make_interval(secs => $3)"
WAITING = f"""
with recursive found (queue) as (
    (select queue from outbox where {RECENT} order by queue limit 1)
    union all
    select (select queue from outbox where queue > f.queue and {RECENT} order by queue limit 1) from found f
    where f.queue is not null
)
select queue from found where queue is not null
"""
"""A query of the queues that have messages. It reads one index entry for each queue, however many messages wait."""
LEASE = f"""
with old as (
    select o.id from (select * from ({WAITING}) w where $5::text[] is null or queue ^@ any($5)) q
    cross join lateral (
        select id from outbox
        where queue = q.queue and {RECENT} and due_at <= now() - make_interval(secs => $1)
        order by due_at limit $2 for update skip locked
    ) o
    limit $2
)
update outbox o set due_at = clock_timestamp() + make_interval(secs => $4), holder = $6
where o.id = any (array(select id from old))
returning o.id as outbox_id, o.queue, o.ids, o.tries, o.body, o.message_id
"""


async def lease(
    session: Session,
    age: float,
    limit: int,
    reach: float,
    seconds: float,
    only: Sequence[str] | None,
    holder: UUID | None,
) -> list[Unpublished]:
    """Lease at most `limit` messages that are older than `age` and not older than `reach` (seconds). The lease ends
    after `seconds`, or when this process has ended. `only`: prefixes of the queues."""
    return rows_as(Unpublished, await session.fetch(LEASE, age, limit, reach, seconds, only, holder))


UNCONSUMED = f"""
select o.id as outbox_id, o.queue, o.ids, o.tries, o.body, o.message_id from ({WAITING}) q
cross join lateral (
    select * from outbox
    where queue = q.queue and {RECENT}
        and due_at <= now() - make_interval(secs => case when q.queue ^@ any($5::text[]) then $1::float8 else $6::float8 end)
    order by due_at limit $2 for update skip locked
) o
where q.queue <> all($4::text[]) and not q.queue ^@ $7 and not q.queue ^@ $8
limit $2
"""


async def lock_unconsumed(
    tx: Transaction, age: float, limit: int, reach: float, stray_age: float
) -> list[Unpublished]:
    """Lock messages that no service consumes: announcements older than `age` seconds, and others older than
    `stray_age`; none older than `reach`. Announcements of status moves are left out: another loop publishes them."""
    rows = await tx.fetch(
        UNCONSUMED,
        age,
        limit,
        reach,
        list(queues.QUEUES),
        list(queues.ANNOUNCEMENTS),
        stray_age,
        queues.WORK,
        queues.STATUS_MOVED,
    )
    return rows_as(Unpublished, rows)


DELETE = "delete from outbox where id = any($1::bigint[])"


async def delete(db: Session | Transaction, ids: Sequence[int]) -> None:
    """Delete messages that are published, or settled in another way."""
    await db.fetch(DELETE, ids)


# The condition RELAXED sets this transaction to relaxed commits. To set the shared connection to them, and back,
# would take two round trips.
DELETE_SETTLED = f"{DELETE} and {RELAXED}"


async def delete_settled(session: Session, ids: Sequence[int]) -> None:
    """Delete settled rows in a commit that a crash may undo. Then the messages are published, or delivered, again."""
    await session.fetch(DELETE_SETTLED, ids)


RELEASE = "update outbox set due_at = clock_timestamp(), holder = null where id = any($1::bigint[])"


async def release(session: Session, ids: Sequence[int]) -> None:
    """End the leases of these messages, so that they can be taken at once."""
    await session.fetch(RELEASE, ids)


REFUSED = """
update outbox set tries = tries + 1, error = 'the broker did not take it', holder = null,
    due_at = clock_timestamp() + make_interval(secs => least(300, 2 ^ least(tries, 8)) * (0.5 + random()))
where id = any($1::bigint[])
"""


async def refused(session: Session, ids: Sequence[int]) -> None:
    """Record that the broker did not accept these messages. The messages are retried with an exponential backoff of up
    to some minutes."""
    await session.fetch(REFUSED, ids)


OFFER_AGAIN = """
update outbox set due_at = clock_timestamp() where queue = $1 and error = 'the broker did not take it'
"""


async def offer_again(session: Session, queue: str) -> None:
    """Make the `refused` messages of a queue due at once, since the queue has a consumer now."""
    await session.fetch(OFFER_AGAIN, queue)


STAGE = "select stage($1, $2::uuid[], $3) as messages"


async def stage(tx: Transaction, queue: str, ids: Sequence[UUID], envelope: int) -> None:
    """Stage messages about these ids, `envelope` ids in each. The messages are published with all others that this
    transaction stages."""
    await tx.stage(STAGE, queue, list(ids), envelope)


STAGE_LATER = """
insert into outbox (queue, ids, due_at)
select $1, array[d.id], clock_timestamp() + make_interval(secs => d.seconds)
from unnest($2::uuid[], $3::float8[]) as d (id, seconds)
where not exists (
    -- A row that was published a moment ago may still exist: only a row with a future instant counts as staged.
    select from outbox o
    where o.queue = $1 and d.id = any (o.ids) and o.holder is null and o.due_at > clock_timestamp())
"""


async def stage_later(tx: Transaction, queue: str, delays: Mapping[UUID, float]) -> None:
    """Stage a message about each id, to be published by a relay after so many seconds. Skip an id that has a message
    with a future instant already."""
    await tx.fetch(STAGE_LATER, queue, list(delays), list(delays.values()))


STUCK = """
select queue, count(*) as count, max(tries) as tries,
    extract(epoch from clock_timestamp() - min(created_at))::float8 as age, max(error) as error
from outbox where created_at < clock_timestamp() - make_interval(secs => $1) and not queue ^@ $2
group by queue order by 2 desc limit 5
"""


@dataclass(frozen=True, slots=True)
class Stuck:
    """Messages of one queue that should have been published: their number, the most tries, and the age of the oldest
    in seconds."""

    queue: str
    count: int
    tries: int
    age: float
    error: str | None


async def stuck(session: Session, age: float) -> list[Stuck]:
    """Return at most five queues with messages that were staged more than `age` seconds ago. Queues of routes are
    left out."""
    return rows_as(Stuck, await session.fetch(STUCK, age, queues.WORK))
