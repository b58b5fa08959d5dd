"""The rows of dead letters: messages that could not be handled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, field
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import orjson
from pydantic import Field

from penstock.language.terms.ids import new_id
from penstock.store.session.database import Session, Transaction
from penstock.store.session.rows import rows_as

TRIGGER = "x-penstock-trigger"
"""The stored header with the routing key of an event from outside."""
APP = "x-penstock-app"
"""The stored header with the `app_id` of an event from outside."""
USER = "x-penstock-user"
"""The stored header with the broker's user that published an event from outside."""

OF_POLICIES = {"expired": "message-ttl", "maxlen": "max-length"}
"""Reasons for which only a policy of the broker can dead-letter our messages, and the key of such a policy."""


@dataclass(frozen=True, slots=True)
class KeptLetter:
    """A dead letter to store, which arrived `count` times. `headers` is JSON. If `body` is only the beginning,
    `cut_from` is the number of bytes of the whole. Letters with the same `fingerprint` are one letter that arrived
    again."""

    id: UUID = field(default_factory=new_id, kw_only=True)
    queue: str
    reason: str
    type: str | None
    message_id: str | None
    body: bytes
    headers: str
    fingerprint: str
    count: int = 1
    cut_from: int | None = None


@dataclass(frozen=True, slots=True)
class LetterFilter:
    """A filter of dead letters: all, or those that match every field that is set. `reason` is a part of the reason,
    or a reason as `counts` returns it."""

    ids: Sequence[UUID] | None = None
    queue: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class LetterCount:
    """The dead letters of one queue and reason: their number, and how often they arrived in all (`deliveries`). In
    the reason, `#` replaces ids and numbers, which differ between letters. `example` is the letter that arrived last."""

    queue: str
    reason: str
    letters: int
    deliveries: int
    first_at: datetime
    last_at: datetime
    example: UUID


@dataclass(frozen=True, slots=True)
class DeadLetterSummary:
    """A dead letter without its contents."""

    id: Annotated[UUID, Field(description="The id of the dead letter.")]
    queue: Annotated[str, Field(description="The queue from which the message came.")]
    reason: Annotated[str, Field(description="The reason why the message could not be handled.")]
    type: Annotated[
        str | None, Field(description="The type of the message, as its sender named it; null: it named none.")
    ]
    message_id: Annotated[
        str | None, Field(description="The id of the message, as its sender named it; null: it named none.")
    ]
    count: Annotated[int, Field(description="The number of times that the message arrived.")]
    first_at: Annotated[datetime, Field(description="The instant at which it arrived first.")]
    last_at: Annotated[datetime, Field(description="The instant at which it arrived last.")]
    bytes: Annotated[int, Field(description="The size of the kept body in bytes.")]
    cut_from: Annotated[
        int | None,
        Field(
            description="The size of the whole body in bytes, if only the beginning was kept; null: the body is whole."
        ),
    ]


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that could not be handled."""

    id: Annotated[UUID, Field(description="The id of the dead letter.")]
    queue: Annotated[str, Field(description="The queue from which the message came.")]
    reason: Annotated[str, Field(description="The reason why the message could not be handled.")]
    type: Annotated[
        str | None, Field(description="The type of the message, as its sender named it; null: it named none.")
    ]
    message_id: Annotated[
        str | None, Field(description="The id of the message, as its sender named it; null: it named none.")
    ]
    count: Annotated[int, Field(description="The number of times that the message arrived.")]
    first_at: Annotated[datetime, Field(description="The instant at which it arrived first.")]
    last_at: Annotated[datetime, Field(description="The instant at which it arrived last.")]
    body: Annotated[
        str,
        Field(
            description="The body of the message as text; secrets are `***`. Perhaps only its beginning, see "
            "`cut_from`."
        ),
    ]
    cut_from: Annotated[
        int | None,
        Field(
            description="The size of the whole body in bytes, if only the beginning was kept; null: the body "
            "is whole."
        ),
    ]
    headers: Annotated[
        dict[str, Any],
        Field(description="The headers of the message. Headers that Penstock does not read are `***`."),
    ]


@dataclass(frozen=True, slots=True)
class StoredLetter:
    """A dead letter for its replay, with the bytes of its body. `cut_from` is that of KeptLetter."""

    id: UUID
    queue: str
    message_id: str | None
    body: bytes
    cut_from: int | None
    headers: dict[str, Any]


@dataclass(frozen=True, slots=True)
class RecentLetter:
    """A dead letter that arrived `count` times, last `age` seconds ago."""

    id: UUID
    queue: str
    reason: str
    count: int
    age: float
    body: bytes


RECENT = """
select id, queue, reason, count, extract(epoch from clock_timestamp() - last_at)::float8 as age, body
from dead_letter where queue = any($1::text[]) and cut_from is null order by last_at desc limit 100
"""


async def recent(session: Session, queue_names: Sequence[str]) -> list[RecentLetter]:
    """Return the hundred dead letters of these queues that arrived last, without those with a cut body."""
    return rows_as(RecentLetter, await session.fetch(RECENT, list(queue_names)))


KEEP = """
insert into dead_letter (id, queue, reason, type, message_id, body, headers, fingerprint, count, cut_from)
select d.id, d.queue, d.reason, d.type, d.message_id, d.body, d.headers::jsonb, d.fingerprint, d.count, d.cut_from
from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bytea[], $7::text[], $8::text[], $9::integer[],
    $10::integer[]) as d (id, queue, reason, type, message_id, body, headers, fingerprint, count, cut_from)
on conflict (fingerprint) do update set count = dead_letter.count + excluded.count, last_at = clock_timestamp(),
    reason = excluded.reason
returning fingerprint, count
"""


async def keep(tx: Transaction, letters: Sequence[KeptLetter]) -> dict[str, int]:
    """Store letters, or add to the counts of those that exist. Fingerprints must differ and be sorted. Return the
    count of each letter by its fingerprint."""
    columns = zip(*map(astuple, letters), strict=True)
    return {row["fingerprint"]: row["count"] for row in await tx.fetch(KEEP, *map(list, columns))}


FOLDED = r"regexp_replace(reason, '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\m\d+([.,]\d+)*', '#', 'g')"
"""An SQL expression: the reason without ids and numbers, which differ between letters with the same cause."""
CHOSEN = f"""
($1::uuid[] is null or id = any($1)) and ($2::text is null or queue = $2)
and ($3::text is null or position($3 in reason) > 0 or {FOLDED} = $3)
"""
LIST = f"""
select id, queue, reason, type, message_id, count, first_at, last_at, octet_length(body) as bytes, cut_from
from dead_letter
where {CHOSEN} and ($4::uuid is null or (last_at, id) < (select last_at, id from dead_letter where id = $4))
order by last_at desc, id desc limit $5
"""


async def newest(
    session: Session, filters: LetterFilter, limit: int, before: UUID | None = None
) -> list[DeadLetterSummary]:
    """Return dead letters, newest first. A letter that arrived again counts as new. `before` is the last letter of
    the page before."""
    return rows_as(DeadLetterSummary, await session.fetch(LIST, *_given(filters), before, limit))


COUNTS = f"""
select queue, {FOLDED} as reason, count(*) as letters, sum(count)::bigint as deliveries, min(first_at) as first_at,
    max(last_at) as last_at, (array_agg(id order by last_at desc))[1] as example
from dead_letter where {CHOSEN} group by 1, 2 order by letters desc, 1, 2
"""


async def counts(session: Session, filters: LetterFilter) -> list[LetterCount]:
    """Count the dead letters of each queue and reason, the largest count first."""
    return rows_as(LetterCount, await session.fetch(COUNTS, *_given(filters)))


FIND = """
select id, queue, reason, type, message_id, count, first_at, last_at, body, cut_from, headers::text as headers
from dead_letter where id = $1
"""


async def find(session: Session, id: UUID) -> DeadLetter | None:
    """Return a dead letter with its contents; None if it does not exist."""
    rows = await session.fetch(FIND, id)
    if not rows:
        return None
    body, headers = rows[0]["body"].decode(errors="replace"), orjson.loads(rows[0]["headers"])
    return DeadLetter(**{**rows[0], "body": body, "headers": headers})


BATCH = f"""
select id, queue, message_id, body, cut_from, headers::text as headers
from (
    select *, sum(octet_length(body)) over (order by id) - octet_length(body) as bytes_before
    from (
        select * from dead_letter
        where {CHOSEN} and ($4::uuid is null or id > $4) and last_at not between $7 and clock_timestamp() order by id limit $5) n
) b
where bytes_before < $6 order by id
"""


async def batch(
    session: Session,
    filters: LetterFilter,
    cursor: UUID | None,
    until: datetime,
    *,
    limit: int,
    max_bytes: int,
) -> list[StoredLetter]:
    """Return the next letters after `cursor` with their contents, in the order of ids: at most `limit`, and not many
    more bytes than `max_bytes`. Letters that arrived after `until` are left out, but not those with an instant that is to
    come: the clock has gone back since."""
    rows = await session.fetch(BATCH, *_given(filters), cursor, limit, max_bytes, until)
    return [StoredLetter(**{**row, "headers": orjson.loads(row["headers"])}) for row in rows]


HOLD = "select id from dead_letter where id = any($1::uuid[]) order by id for update"


async def hold(tx: Transaction, ids: Sequence[UUID]) -> set[UUID]:
    """Lock the letters among `ids` that exist, and return their ids."""
    return {row["id"] for row in await tx.fetch(HOLD, list(ids))}


DROP = "delete from dead_letter where id = any($1::uuid[]) returning id"


async def drop(tx: Transaction, ids: Sequence[UUID]) -> list[UUID]:
    """Delete these letters. Return the ids of those that existed."""
    return [row["id"] for row in await tx.fetch(DROP, list(ids))]


COUNT = f"select count(*) as count from dead_letter where {CHOSEN}"


async def count(session: Session, filters: LetterFilter) -> int:
    return int((await session.fetch(COUNT, *_given(filters)))[0]["count"])


DROP_BATCH = f"""
delete from dead_letter where id = any(array(select id from dead_letter where {CHOSEN} order by id limit $4))
returning id
"""


async def drop_batch(tx: Transaction, filters: LetterFilter, limit: int) -> list[UUID]:
    """Delete at most `limit` letters that match. Return their ids."""
    return [row["id"] for row in await tx.fetch(DROP_BATCH, *_given(filters), limit)]


def _given(filters: LetterFilter) -> tuple[list[UUID] | None, str | None, str | None]:
    return (None if filters.ids is None else list(filters.ids)), filters.queue, filters.reason
