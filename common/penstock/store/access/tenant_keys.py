"""The data keys of encrypted tenants, wrapped by a master key. The master key is not in the database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from penstock.store.session.database import Session, Transaction
from penstock.store.session.rows import rows_as


@dataclass(frozen=True, slots=True)
class WrappedKey:
    """A data key of a tenant, wrapped by the master key with this id."""

    tenant: str
    number: int
    data_key: bytes
    master_key: str


@dataclass(frozen=True, slots=True)
class TenantKey:
    """The public facts of a data key. `seals`: new values are sealed under it."""

    tenant: str
    number: int
    master_key: str
    seals: bool
    made_by: str
    made_at: datetime


LOCK = "lock table tenant_key in share row exclusive mode"
NEXT_NUMBER = "select coalesce(max(number), 0) + 1 as number from tenant_key where tenant = $1"


async def next_number(tx: Transaction, tenant: str) -> int:
    """Return the number of the next key of a tenant. No other transaction makes a key until this one has ended."""
    await tx.execute(LOCK)
    return int((await tx.fetch(NEXT_NUMBER, tenant))[0]["number"])


STOP = "update tenant_key set seals = false where tenant = $1 and seals returning tenant"


async def stop_sealing(db: Session | Transaction, tenant: str) -> bool:
    """Store the values of a tenant in clear from now on. Return False if they are stored in clear already."""
    return bool(await db.fetch(STOP, tenant))


PUT = """
insert into tenant_key (tenant, number, data_key, master_key, seals, made_by) values ($1, $2, $3, $4, true, $5)
returning tenant, number, master_key, seals, made_by, made_at
"""


async def put(tx: Transaction, key: WrappedKey, by: str) -> TenantKey:
    """Store a key under which the values of its tenant are sealed from now on."""
    rows = await tx.fetch(PUT, key.tenant, key.number, key.data_key, key.master_key, by)
    return rows_as(TenantKey, rows)[0]


GUARD = "select guard_values()"


async def guard(tx: Transaction) -> None:
    """Create the triggers that refuse plain values of encrypted tenants. Only the owner of the tables may create
    them."""
    await tx.fetch(GUARD)


LIST = "select tenant, number, master_key, seals, made_by, made_at from tenant_key order by tenant, number"


async def listed(session: Session | Transaction) -> list[TenantKey]:
    """Return the keys of all tenants."""
    return rows_as(TenantKey, await session.fetch(LIST))


ENCRYPTED = "select tenant from tenant_key where seals order by tenant"


async def encrypted_tenants(session: Session | Transaction) -> list[str]:
    """Return the encrypted tenants."""
    return [str(row["tenant"]) for row in await session.fetch(ENCRYPTED)]


HAS_POLLS = "select exists (select from poll) as there"


async def has_polls(tx: Transaction) -> bool:
    """Return whether there are poll triggers."""
    return bool((await tx.fetch(HAS_POLLS))[0]["there"])


UNDER_OTHERS = """
select tenant, number, data_key, master_key from tenant_key
where master_key <> $1 and (tenant, number) > ($2, $3) order by tenant, number limit $4
"""


async def under_other_keys(
    session: Session, master_key: str, cursor: tuple[str, int], limit: int
) -> Sequence[WrappedKey]:
    """Return at most `limit` data keys under another master key than this, after (tenant, number) `cursor`."""
    return rows_as(WrappedKey, await session.fetch(UNDER_OTHERS, master_key, *cursor, limit))


REWRAP = """
update tenant_key set data_key = $4, master_key = $5 where tenant = $1 and number = $2 and data_key = $3 returning tenant
"""


async def rewrap(session: Session, key: WrappedKey, data_key: bytes, master_key: str) -> bool:
    """Wrap a data key by another master key. Return False if that was done meanwhile."""
    return bool(await session.fetch(REWRAP, key.tenant, key.number, key.data_key, data_key, master_key))
