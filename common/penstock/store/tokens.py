"""Tokens of the HTTP API, as they are kept: by a digest of their secrets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from penstock.store.database import Session, Transaction
from penstock.store.rows import first_as, rows_as


@dataclass(frozen=True, slots=True)
class Token:
    """A token without its secret. No `tenants`: all of them."""

    name: str
    scopes: list[str]
    tenants: list[str]
    created_by: str
    created_at: datetime
    expires_at: datetime | None


CREATE = """
insert into api_token (id, name, digest, scopes, tenants, created_by, expires_at)
values ($1, $2, $3, $4, $5, $6, clock_timestamp() + make_interval(secs => $7::float8))
on conflict (name) do nothing
returning name, scopes, tenants, created_by, created_at, expires_at
"""


async def create(
    session: Session | Transaction,
    id: UUID,
    name: str,
    digest: bytes,
    scopes: Sequence[str],
    tenants: Sequence[str],
    by: str,
    seconds: float | None,
) -> Token | None:
    """None where there is one of that name."""
    rows = await session.fetch(CREATE, id, name, digest, list(scopes), list(tenants), by, seconds)
    return first_as(Token, rows)


LIST = "select name, scopes, tenants, created_by, created_at, expires_at from api_token order by name"


async def listed(session: Session) -> list[Token]:
    """All of them, those that have expired too."""
    return rows_as(Token, await session.fetch(LIST))


FIND = """
select name, scopes, tenants, created_by, created_at, expires_at from api_token
where digest = $1 and (expires_at is null or expires_at > clock_timestamp())
"""


async def find(session: Session, digest: bytes) -> Token | None:
    """The one with this digest, unless it has expired."""
    return first_as(Token, await session.fetch(FIND, digest))


DELETE = """
delete from api_token where name = $1 returning name, scopes, tenants, created_by, created_at, expires_at
"""


async def delete(tx: Transaction, name: str) -> Token | None:
    """Delete a token, and return it. Return None where there is none of that name."""
    return first_as(Token, await tx.fetch(DELETE, name))
