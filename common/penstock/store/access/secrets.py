"""The rows of secrets. Secrets are sealed: the master key that opens them is not in the database."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field

from penstock.store.session.database import Session, Transaction
from penstock.store.session.rows import rows_as


@dataclass(frozen=True, slots=True)
class Sealed:
    """A secret that is encrypted under a data key, and the data key that is encrypted under the master key
    `master_key` (an id). A secret with an empty `tenant` signs calls, or makes the codes of a second factor."""

    tenant: str
    name: str
    sealed: bytes
    data_key: bytes
    master_key: str


@dataclass(frozen=True, slots=True)
class SecretSummary:
    """A secret without its value."""

    tenant: Annotated[str, Field(description="Only executions of this tenant can use the secret.")]
    name: Annotated[str, Field(description="The name of the secret, unique within the tenant.")]
    master_key: Annotated[str, Field(description="The id of its master key.")]
    set_by: Annotated[str, Field(description="The caller that set the present value.")]
    set_at: Annotated[datetime, Field(description="The instant at which the present value was set.")]


PUT = """
insert into secret as s (tenant, name, sealed, data_key, master_key, set_by) values ($1, $2, $3, $4, $5, $6)
on conflict (tenant, name) do update set sealed = excluded.sealed, data_key = excluded.data_key,
    master_key = excluded.master_key, set_by = excluded.set_by, set_at = clock_timestamp()
returning tenant, name, master_key, set_by, set_at
"""


async def put(session: Session | Transaction, secret: Sealed, by: str) -> SecretSummary:
    """Insert a secret, or replace it, and return its summary."""
    rows = await session.fetch(
        PUT, secret.tenant, secret.name, secret.sealed, secret.data_key, secret.master_key, by
    )
    [summary] = rows_as(SecretSummary, rows)
    return summary


LIST = """
select tenant, name, master_key, set_by, set_at from secret
where tenant <> '' and ($1::text[] is null or tenant = any ($1)) order by tenant, name
"""


async def listed(session: Session, tenants: Collection[str] | None = None) -> list[SecretSummary]:
    """Return the secrets of these tenants, or of all (None). Secrets without a tenant are left out."""
    return rows_as(SecretSummary, await session.fetch(LIST, None if tenants is None else list(tenants)))


FIND = "select tenant, name, sealed, data_key, master_key from secret where tenant = $1 and name = any ($2)"


async def find(session: Session | Transaction, tenant: str, names: Collection[str]) -> list[Sealed]:
    """Return the secrets of a tenant among `names`; a name without a secret is left out."""
    return rows_as(Sealed, await session.fetch(FIND, tenant, list(names)))


OF_ATTEMPT = "select tenant, name, sealed, data_key, master_key from secrets_of_attempt($1, $2, $3)"


async def of_attempt(
    session: Session, execution: UUID, process: UUID, names: Collection[str]
) -> list[Sealed]:
    """Return the secrets among `names` that the execution's parameters refer to. Return none unless `process` has
    claimed the execution."""
    return rows_as(Sealed, await session.fetch(OF_ATTEMPT, execution, process, list(names)))


OF_SUBSCRIPTIONS = "select tenant, name, sealed, data_key, master_key from secrets_of_subscriptions($1)"


async def of_subscriptions(session: Session, names: Collection[str]) -> list[Sealed]:
    """Return the secrets that sign the calls of the subscriptions `names`."""
    return rows_as(Sealed, await session.fetch(OF_SUBSCRIPTIONS, list(names)))


DELETE = "delete from secret where tenant = $1 and name = $2 returning name"


async def delete(session: Session, tenant: str, name: str) -> bool:
    """Delete a secret. Return False if it does not exist."""
    return bool(await session.fetch(DELETE, tenant, name))


USERS = r"""
select c.kind || ' ' || c.ref as name from catalog c join definition d on d.id = c.definition_id
where c.enabled and d.body::text ~ ('\{\{[-+]?(\s|\\[nrt])*secrets\s*\.\s*' || $2 || '\M')
    and case c.kind
        when 'schedule' then coalesce(nullif(d.body ->> 'tenant', ''), 'public') = $1
        when 'rule' then coalesce(nullif(d.body ->> 'tenant', ''), $1) = $1
        else true end
order by c.kind, c.ref
"""


async def users(session: Session, tenant: str, name: str) -> list[str]:
    """Return the enabled definitions that refer to a secret in their current version, each as `KIND REF`. Rules and
    schedules of other tenants are left out."""
    return [row["name"] for row in await session.fetch(USERS, tenant, name)]


UNDER_OTHERS = """
select tenant, name, sealed, data_key, master_key from secret
where master_key <> $1 and (tenant, name) > ($2, $3) order by tenant, name limit $4
"""


async def under_other_keys(
    session: Session, master_key: str, cursor: tuple[str, str], limit: int
) -> Sequence[Sealed]:
    """Return at most `limit` secrets with a data key under another master key than this, after (tenant, name)
    `cursor`."""
    return rows_as(Sealed, await session.fetch(UNDER_OTHERS, master_key, *cursor, limit))


REWRAP = "update secret set data_key = $4, master_key = $5 where tenant = $1 and name = $2 and data_key = $3 returning name"


async def rewrap(session: Session, secret: Sealed, data_key: bytes, master_key: str) -> bool:
    """Replace the data key of a secret by `data_key`, which is under `master_key`. Return False if the secret was set
    again or deleted meanwhile."""
    return bool(
        await session.fetch(REWRAP, secret.tenant, secret.name, secret.data_key, data_key, master_key)
    )


KEYS = """
select master_key, count(*)::integer as secrets
from (select master_key from secret union all select master_key from tenant_key) k group by master_key order by master_key
"""


@dataclass(frozen=True, slots=True)
class KeyUse:
    """The number of secrets, and of data keys of encrypted tenants, under a master key."""

    master_key: str
    secrets: int


async def keys_in_use(session: Session) -> list[KeyUse]:
    return rows_as(KeyUse, await session.fetch(KEYS))
