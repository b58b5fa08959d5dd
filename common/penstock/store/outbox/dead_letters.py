"""Messages that could not be handled, as they are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson

from penstock.language.terms.ids import new_id
from penstock.store.session.database import Session, Transaction
from penstock.store.session.rows import rows_as

TRIGGER = "x-penstock-trigger"
"""In the stored headers of an event from outside: its routing key."""
APP = "x-penstock-app"
"""In the stored headers of an event from outside: its `app_id`."""
USER = "x-penstock-user"
"""In the stored headers of an event from outside: the user of the broker that published it."""

OF_POLICIES = {"expired": "message-ttl", "maxlen": "max-length"}
"""Reasons for which only a policy of the broker ends a message of ours, and the key of such a policy."""


@dataclass(frozen=True, slots=True)
class KeptLetter:
    """A letter to keep, which came `count` times. `headers` is JSON; `cut_from` are the bytes that the body had, where this
    is only its beginning. The same `fingerprint` again is the same letter again."""

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
    """A filter of dead letters: all, or those that match every field that is set. `reason` is a part of the reason, or the
    reason as `counts` gives it."""

    ids: Sequence[UUID] | None = None
    queue: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class LetterCount:
    """Dead letters of one queue and reason: how many there are, and how often they came in all (`deliveries`). In the reason
    `#` stands for ids and numbers, which differ from letter to letter; `example` is the letter that came last."""

    queue: str
    reason: str
    letters: int
    deliveries: int
    first_at: datetime
    last_at: datetime
    example: UUID


@dataclass(frozen=True, slots=True)
class DeadLetterSummary:
    """A dead letter without its contents: how often it came (`count`), first and last, how many bytes are kept of it, and
    of how many (`cut_from`) if that is not all."""

    id: UUID
    queue: str
    reason: str
    type: str | None
    message_id: str | None
    count: int
    first_at: datetime
    last_at: datetime
    bytes: int
    cut_from: int | None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that could not be handled: where it was, why, how often it came (`count`), and its body as text; `cut_from`
    are the bytes that it had, if only the beginning was kept."""

    id: UUID
    queue: str
    reason: str
    type: str | None
    message_id: str | None
    count: int
    first_at: datetime
    last_at: datetime
    body: str
    cut_from: int | None
    headers: dict[str, Any]


@dataclass(frozen=True, slots=True)
class RecentLetter:
    """A dead letter that came `count` times, last `age` seconds ago."""

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
    """The hundred of these queues that came last, whole ones."""
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
    """Keep letters, or count those that are there already. No two have the same fingerprint, and they are in its order. Return
    how often each came by now, by its fingerprint."""
    columns = zip(*map(astuple, letters), strict=True)
    return {row["fingerprint"]: row["count"] for row in await tx.fetch(KEEP, *map(list, columns))}


FOLDED = r"regexp_replace(reason, '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\m\d+([.,]\d+)*', '#', 'g')"
"""A reason without what differs between letters that died of the same."""
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
    """Return dead letters, the latest to arrive first. `before` is the last letter of the page before."""
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
    """One with its contents."""
    return next(iter(map(_letter, await session.fetch(FIND, id))), None)


BATCH = f"""
select id, queue, reason, type, message_id, count, first_at, last_at, body, cut_from, headers::text as headers
from (
    select *, sum(octet_length(body)) over (order by id) - octet_length(body) as bytes_before
    from (select * from dead_letter where {CHOSEN} and ($4::uuid is null or id > $4) order by id limit $5) n
) b
where bytes_before < $6 order by id
"""


async def batch(
    session: Session, filters: LetterFilter, cursor: UUID | None, *, limit: int, most: int
) -> list[DeadLetter]:
    """Return the next letters after `cursor`, by id, with their contents: at most `limit`, and hardly more bytes than `most`."""
    return [_letter(row) for row in await session.fetch(BATCH, *_given(filters), cursor, limit, most)]


HOLD = "select id from dead_letter where id = any($1::uuid[]) order by id for update"


async def hold(tx: Transaction, ids: Sequence[UUID]) -> set[UUID]:
    """Lock those of these that are there."""
    return {row["id"] for row in await tx.fetch(HOLD, list(ids))}


DROP = "delete from dead_letter where id = any($1::uuid[]) returning id"


async def drop(tx: Transaction, ids: Sequence[UUID]) -> list[UUID]:
    """Forget these. Returns those that were there."""
    return [row["id"] for row in await tx.fetch(DROP, list(ids))]


COUNT = f"select count(*) as count from dead_letter where {CHOSEN}"


async def count(session: Session, filters: LetterFilter) -> int:
    return int((await session.fetch(COUNT, *_given(filters)))[0]["count"])


DROP_BATCH = f"""
delete from dead_letter where id = any(array(select id from dead_letter where {CHOSEN} order by id limit $4))
returning id
"""


async def drop_batch(tx: Transaction, filters: LetterFilter, limit: int) -> list[UUID]:
    """Forget at most `limit` of them. Returns those that are gone."""
    return [row["id"] for row in await tx.fetch(DROP_BATCH, *_given(filters), limit)]


def _given(filters: LetterFilter) -> tuple[list[UUID] | None, str | None, str | None]:
    return (None if filters.ids is None else list(filters.ids)), filters.queue, filters.reason


def _letter(row: Any) -> DeadLetter:
    body, headers = row["body"].decode(errors="replace"), orjson.loads(row["headers"])
    return DeadLetter(**{**row, "body": body, "headers": headers})
