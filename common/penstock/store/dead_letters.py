"""Messages that could not be handled, as they are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson

from penstock.store.database import Session, Transaction
from penstock.store.rows import rows_as


@dataclass(frozen=True, slots=True)
class KeptLetter:
    """A letter to keep, which came `count` times. `headers` is JSON. The same `fingerprint` again is the same letter again."""

    id: UUID
    queue: str
    reason: str
    type: str | None
    message_id: str | None
    body: bytes
    headers: str
    fingerprint: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class DeadLetterSummary:
    """A dead letter without its contents: how often it came (`count`), first and last, and how many bytes it has."""

    id: UUID
    queue: str
    reason: str
    type: str | None
    message_id: str | None
    count: int
    first_at: datetime
    last_at: datetime
    bytes: int


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that could not be handled: where it was, why, how often it came (`count`), and its body as text."""

    id: UUID
    queue: str
    reason: str
    type: str | None
    message_id: str | None
    count: int
    first_at: datetime
    last_at: datetime
    body: str
    headers: dict[str, Any]


KEEP = """
insert into dead_letter (id, queue, reason, type, message_id, body, headers, fingerprint, count)
select d.id, d.queue, d.reason, d.type, d.message_id, d.body, d.headers::jsonb, d.fingerprint, d.count
from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bytea[], $7::text[], $8::text[], $9::integer[])
    as d (id, queue, reason, type, message_id, body, headers, fingerprint, count)
on conflict (fingerprint) do update set count = dead_letter.count + excluded.count, last_at = clock_timestamp(),
    reason = excluded.reason
"""


async def keep(tx: Transaction, letters: Sequence[KeptLetter]) -> None:
    """Keep letters, or count those that are there already. No two have the same fingerprint, and they are in its order."""
    columns = zip(*map(astuple, letters), strict=True)
    await tx.fetch(KEEP, *map(list, columns))


NEWEST = """
select id, queue, reason, type, message_id, count, first_at, last_at, octet_length(body) as bytes from dead_letter
where ($1::text is null or queue = $1) order by last_at desc limit $2
"""


async def newest(session: Session, queue: str | None, limit: int) -> list[DeadLetterSummary]:
    """Those of a queue, or all, that came (again) last first."""
    return rows_as(DeadLetterSummary, await session.fetch(NEWEST, queue, limit))


FIND = """
select id, queue, reason, type, message_id, count, first_at, last_at, body, headers::text as headers
from dead_letter where id = $1
"""


async def find(session: Session, id: UUID) -> DeadLetter | None:
    """One with its contents."""
    for row in await session.fetch(FIND, id):
        body, headers = row["body"].decode(errors="replace"), orjson.loads(row["headers"])
        return DeadLetter(**{**row, "body": body, "headers": headers})
    return None


DROP = "delete from dead_letter where id = any($1::uuid[]) returning id"


async def drop(session: Session, ids: Sequence[UUID]) -> list[UUID]:
    """Forget these. Returns those that were there."""
    return [row["id"] for row in await session.fetch(DROP, list(ids))]


COUNT = "select count(*) as count from dead_letter"


async def count(session: Session) -> int:
    return int((await session.fetch(COUNT))[0]["count"])
