"""The rows of API tokens. Of each secret only a digest is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field

from penstock.store.session.database import Session, Transaction
from penstock.store.session.rows import first_as, rows_as


@dataclass(frozen=True, slots=True)
class Token:
    """A token without its secret."""

    # Routes and packs limit the scope `work`.

    name: Annotated[str, Field(description="The name of the token.")]
    scopes: list[str]
    tenants: Annotated[list[str], Field(description="The tenants that the token may use. Empty: all.")]
    routes: Annotated[
        list[str],
        Field(description="The routes (work queues) that workers with this token may serve. Empty: all."),
    ]
    packs: Annotated[
        list[str],
        Field(description="The packs (groups of actions) that workers with this token may run. Empty: all."),
    ]
    created_by: str
    created_at: datetime
    expires_at: Annotated[datetime | None, Field(description="The instant at which it expires; null: never.")]
    rotated_at: Annotated[
        datetime | None, Field(description="The instant of the last rotation; null if there was none.")
    ]
    used_at: Annotated[
        datetime | None,
        Field(description="The instant of its last use, exact to ten minutes; null if it was never used."),
    ]
    old_until: Annotated[
        datetime | None,
        Field(
            description="The instant until which the secret before the last rotation is valid. null: there is none."
        ),
    ]


COLUMNS = (
    "name, scopes, tenants, routes, packs, created_by, created_at, expires_at, rotated_at, used_at, old_until"
)
CREATE = f"""
insert into api_token (id, name, digest, scopes, tenants, routes, packs, created_by, expires_at)
values ($1, $2, $3, $4, $5, $8, $9, $6, clock_timestamp() + make_interval(secs => $7::float8))
on conflict (name) do nothing
returning {COLUMNS}
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
    *,
    routes: Sequence[str] = (),
    packs: Sequence[str] = (),
) -> Token | None:
    """Insert a token that expires after `seconds` (None: never), and return it; None if a token of that name exists."""
    rows = await session.fetch(
        CREATE, id, name, digest, list(scopes), list(tenants), by, seconds, list(routes), list(packs)
    )
    return first_as(Token, rows)


LIST = f"select {COLUMNS} from api_token order by name"


async def listed(session: Session) -> list[Token]:
    """Return all tokens by name, expired ones too."""
    return rows_as(Token, await session.fetch(LIST))


FIND = f"""
with found as (
    select * from api_token
    where (digest = $1 and (expires_at is null or expires_at > clock_timestamp()))
        or (old_digest = $1 and old_until > clock_timestamp())
), used as (
    update api_token t set used_at = clock_timestamp() from found
    where t.id = found.id and (found.used_at is null or found.used_at < clock_timestamp() - interval '10 minutes')
)
select {COLUMNS} from found
"""


async def find(session: Session, digest: bytes) -> Token | None:
    """Return the token with this digest, unless it has expired, and note its use."""
    return first_as(Token, await session.fetch(FIND, digest))


@dataclass(frozen=True, slots=True)
class WorkToken:
    """A token of the scope `work`."""

    name: str
    scopes: list[str]
    tenants: list[str]
    routes: list[str]
    packs: list[str]


FIND_WORK = "select name, scopes, tenants, routes, packs from find_work_token($1)"


async def find_work(session: Session, digest: bytes) -> WorkToken | None:
    """Return the token with this digest if it has the scope `work` and has not expired, and note its use. A worker's
    role can call this."""
    return first_as(WorkToken, await session.fetch(FIND_WORK, digest))


ROTATE = f"""
update api_token set digest = $2, rotated_at = clock_timestamp(), old_digest = digest,
    old_until = least(clock_timestamp() + make_interval(secs => $3::float8), expires_at),
    expires_at = clock_timestamp() + make_interval(secs => $4::float8)
where name = $1
returning {COLUMNS}
"""


async def rotate(
    tx: Transaction, name: str, digest: bytes, overlap: float, seconds: float | None
) -> Token | None:
    """Give a token another secret, which expires after `seconds`. The former secret stays valid for `overlap`
    seconds, but not longer than before. Return None if no token has that name."""
    return first_as(Token, await tx.fetch(ROTATE, name, digest, overlap, seconds))


DELETE = f"delete from api_token where name = $1 returning {COLUMNS}"


async def delete(tx: Transaction, name: str) -> Token | None:
    """Delete a token, and return it; None if no token has that name."""
    return first_as(Token, await tx.fetch(DELETE, name))
