"""The rows of saved views: lists of executions that callers find again by a name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import orjson
from pydantic import Field

from penstock.store.session.database import Session, Transaction
from penstock.store.session.rows import rows_as


@dataclass(frozen=True, slots=True)
class SavedView:
    """A saved view of the list of executions."""

    id: Annotated[UUID, Field(description="The id of the view.")]
    owner: Annotated[
        str | None,
        Field(
            description="The caller that saved it: `user:NAME`, `token:NAME`, or `local access` for the command line and "
            "for pages without a sign-in; null: its user or token was removed."
        ),
    ]
    name: Annotated[str, Field(description="The name of the view. No other view of the owner has it.")]
    description: Annotated[str | None, Field(description="The purpose of the view; null: none is noted.")]
    filters: Annotated[
        dict[str, Any],
        Field(
            description="The filters of the view, named like the query parameters of the list of executions."
        ),
    ]
    tenants: Annotated[
        list[str] | None,
        Field(
            description="The shared view is shown only to callers that may read all these tenants; null: all tenants."
        ),
    ]
    shared: Annotated[bool, Field(description="True: others see it, too. False: only the owner does.")]
    version: Annotated[
        int,
        Field(
            description="The number of the version. A change names the version that it read, and increases it by 1."
        ),
    ]
    created_at: datetime
    changed_at: Annotated[datetime, Field(description="The instant of the last change.")]
    changed_by: Annotated[str, Field(description="The author of the last change, written as in `owner`.")]


def _views(rows: Iterable[Any]) -> list[SavedView]:
    return rows_as(SavedView, [{**row, "filters": orjson.loads(row["filters"])} for row in rows])


COLUMNS = """
id, owner, name, description, filters, tenants, shared, version, created_at, changed_at, changed_by
"""
# The tenants of a caller: null means all. A caller of some tenants sees shared views that are for no other tenant.
SEEN = "(owner = $1 or shared and ($2::text[] is null or tenants <@ $2))"
LIST = f"""
select {COLUMNS} from saved_view where owner = $1
union all
select {COLUMNS} from saved_view where shared and owner is distinct from $1 and ($2::text[] is null or tenants <@ $2)
order by name, owner nulls last, id
"""


async def seen_by(session: Session, owner: str, tenants: Sequence[str] | None) -> list[SavedView]:
    """Return the views of a caller with these tenants (None: all), and the shared ones that it may see, by name."""
    return _views(await session.fetch(LIST, owner, tenants))


ONE = f"select {COLUMNS} from saved_view where id = $3 and {SEEN}"


async def find(
    session: Session | Transaction, id: UUID, owner: str, tenants: Sequence[str] | None
) -> SavedView | None:
    """Return the view if a caller with these tenants may see it."""
    return next(iter(_views(await session.fetch(ONE, owner, tenants, id))), None)


# Two saves of one owner take turns: the number of its views and the name of the new one stay true until the commit.
LOCK_OWNER = "select pg_advisory_xact_lock(hashtextextended('penstock.saved_views:' || $1, 0))"
NAMES = "select id, name from saved_view where owner = $1"


async def lock_names(tx: Transaction, owner: str) -> Mapping[str, UUID]:
    """Lock the views of an owner against changes by others until the commit. Return their ids by name."""
    await tx.fetch(LOCK_OWNER, owner)
    return {row["name"]: row["id"] for row in await tx.fetch(NAMES, owner)}


# The removal of a person or a token waits for a save in its name, and then removes that view, too. A save that waited for the
# removal finds no row.
KEEPS: Mapping[str, str] = {
    "user": "select from person where name = $1 for key share",
    "token": "select from api_token where name = $1 for key share",
}


async def keep_owner(tx: Transaction, owner: str) -> bool:
    """Keep the user or the token of this name from being removed until the commit. Return False if there is none. Any other owner
    is a name without a row."""
    kind, _, name = owner.partition(":")
    if not name or kind not in KEEPS:
        return True
    return bool(await tx.fetch(KEEPS[kind], name))


CREATE = f"""
insert into saved_view (id, owner, name, description, filters, tenants, shared, changed_by)
values ($1, $2, $3, $4, $5::jsonb, $6, $7, $2)
returning {COLUMNS}
"""


async def create(
    tx: Transaction,
    id: UUID,
    owner: str,
    name: str,
    *,
    description: str | None,
    filters: Mapping[str, Any],
    tenants: Sequence[str] | None,
    shared: bool,
) -> SavedView:
    """Insert a view. The caller has locked the names of its owner."""
    document = orjson.dumps(filters).decode()
    return _views(await tx.fetch(CREATE, id, owner, name, description, document, tenants, shared))[0]


UPDATE = f"""
update saved_view set name = $3, description = $4, filters = $5::jsonb, tenants = $6, shared = $7, version = version + 1,
    changed_at = clock_timestamp(), changed_by = $8
where id = $1 and version = $2
returning {COLUMNS}
"""


async def update(
    tx: Transaction,
    id: UUID,
    version: int,
    name: str,
    *,
    description: str | None,
    filters: Mapping[str, Any],
    tenants: Sequence[str] | None,
    shared: bool,
    by: str,
) -> SavedView | None:
    """Replace a view that still has this version; None if it has another one, or is gone. The caller has locked the names of its
    owner."""
    document = orjson.dumps(filters).decode()
    rows = await tx.fetch(UPDATE, id, version, name, description, document, tenants, shared, by)
    return next(iter(_views(rows)), None)


REPLACE = f"""
update saved_view set description = $2, filters = $3::jsonb, tenants = $4, shared = $5, version = version + 1,
    changed_at = clock_timestamp(), changed_by = $6
where id = $1
returning {COLUMNS}
"""


async def replace(
    tx: Transaction,
    id: UUID,
    *,
    description: str | None,
    filters: Mapping[str, Any],
    tenants: Sequence[str] | None,
    shared: bool,
    by: str,
) -> SavedView | None:
    """Replace a view, whatever its version; None if it is gone. The caller has locked the names of its owner."""
    document = orjson.dumps(filters).decode()
    return next(iter(_views(await tx.fetch(REPLACE, id, description, document, tenants, shared, by))), None)


DELETE = "delete from saved_view where id = $1 returning id"


async def delete(tx: Transaction, id: UUID) -> bool:
    """Delete a view. Return False if it is gone. The caller has locked the names of its owner."""
    return bool(await tx.fetch(DELETE, id))


FORGET = "delete from saved_view where owner = $1 and not shared"
LEAVE = "update saved_view set owner = null, version = version + 1 where owner = $1"


async def forget_owner(tx: Transaction, owner: str) -> None:
    """Delete the private views of a removed user or token, and leave its shared ones without an owner: a later user of the same
    name is another one. The caller has deleted the row of the owner."""
    await tx.execute(FORGET, owner)
    await tx.execute(LEAVE, owner)
