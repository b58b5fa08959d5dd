"""The changes that callers made over HTTP, as they are kept."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from penstock.store.database import Session
from penstock.store.rows import rows_as


@dataclass(frozen=True, slots=True)
class AuditedChange:
    """The actor of a change, the change, its object, and the reason where it was given."""

    id: int
    at: datetime
    by: str
    operation: str
    target: str
    reason: str | None


NOTE = "insert into audit (by, operation, target, reason) values ($1, $2, $3, $4)"


async def note(session: Session, by: str, operation: str, target: str, reason: str | None) -> None:
    await session.fetch(NOTE, by, operation, target, reason)


NEWEST = """
select id, at, by, operation, target, reason from audit
where ($1::bigint is null or id < $1) and ($2::text is null or by = $2) order by id desc limit $3
"""


async def newest(session: Session, before: int | None, by: str | None, limit: int) -> list[AuditedChange]:
    """Return the newest changes (of one caller), from before that one on."""
    return rows_as(AuditedChange, await session.fetch(NEWEST, before, by, limit))
