"""The encryption of a tenant's values: switching it on and off, and rotating its data key."""

from __future__ import annotations

import asyncio

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from penstock.errors import ConfigurationError, Conflict, NotFound
from penstock.language.terms.outside_names import check_tenant
from penstock.store.access import tenant_keys
from penstock.store.access.tenant_keys import TenantKey, WrappedKey
from penstock.store.session.codec import key_context
from penstock.store.session.database import Session
from penstock.store.session.master_keys import MasterKeys, master_keys

AT_ONCE = 100
"""The maximum number of data keys that are wrapped in one transaction."""
POLLED_TENANT = "public"
"""The tenant of poll triggers' calls. It cannot be encrypted, since the database itself passes on their state."""


async def encrypt(session: Session, tenant: str, *, by: str) -> TenantKey:
    """Encrypt the values of a tenant that are written from now on. Raises InvalidInput if the tenant is not a valid
    name, and ConfigurationError without a master key. Raises Conflict if they are already encrypted, or if poll
    triggers run as this tenant. Raises NotAllowed for a role that does not own the tables."""
    check_tenant(tenant)
    keys = master_keys(session.settings)
    async with session.transaction() as tx:
        number = await tenant_keys.next_number(tx, tenant)
        if tenant in await tenant_keys.encrypted_tenants(tx):
            raise Conflict(
                f"the values of tenant {tenant} are already encrypted",
                hint=f"For a new key, run `penstock encryption rotate {tenant}`.",
            )
        if tenant == POLLED_TENANT and await tenant_keys.has_polls(tx):
            raise Conflict(
                f"poll triggers run in tenant {tenant}, and their state would stay unencrypted",
                hint="Remove the poll triggers, and publish their events from a program in another tenant.",
            )
        await tenant_keys.guard(tx)
        new_key = await tenant_keys.put(tx, await _new_key(keys, tenant, number), by)
        tx.tell(tenant=tenant, number=number, master_key=new_key.master_key)
    _forget(session)
    return new_key


async def decrypt(session: Session, tenant: str) -> None:
    """Store the values of a tenant in clear from now on. Encrypted values stay encrypted, and can be read. Raises
    NotFound if they are not encrypted."""
    async with session.transaction() as tx:
        if not await tenant_keys.stop_sealing(tx, tenant):
            raise NotFound(
                f"the values of tenant {tenant} are not encrypted",
                hint="`penstock encryption list` lists the encrypted tenants.",
            )
        tx.tell(tenant=tenant)
    _forget(session)


async def rotate(session: Session, tenant: str, *, by: str) -> TenantKey:
    """Seal new values of a tenant under a new data key. Older keys still open the values that they have sealed. Raises
    NotFound if its values are not encrypted, and ConfigurationError without a master key."""
    keys = master_keys(session.settings)
    async with session.transaction() as tx:
        number = await tenant_keys.next_number(tx, tenant)
        if not await tenant_keys.stop_sealing(tx, tenant):
            raise NotFound(
                f"the values of tenant {tenant} are not encrypted",
                hint=f"Encrypt them: penstock encryption on {tenant}",
            )
        new_key = await tenant_keys.put(tx, await _new_key(keys, tenant, number), by)
        tx.tell(tenant=tenant, number=number, master_key=new_key.master_key)
    _forget(session)
    return new_key


async def rewrap(session: Session) -> int:
    """Wrap every data key of a tenant under the newest master key. Return the number of keys that were under another
    one. Raises ConfigurationError without a master key, or if a key cannot be opened with the present ones."""
    keys = master_keys(session.settings)
    newest, _ = await asyncio.to_thread(keys.wrap, AESGCM.generate_key(256), b"")
    done, cursor = 0, ("", 0)
    while wrapped := await tenant_keys.under_other_keys(session, newest, cursor, AT_ONCE):
        for key in wrapped:
            context = key_context(key.tenant, key.number)
            try:
                raw = await asyncio.to_thread(keys.unwrap, key.master_key, key.data_key, context)
            except ConfigurationError:
                raise
            except Exception as error:
                raise ConfigurationError(
                    f"the key service could not decrypt key {key.number} of tenant {key.tenant}: {type(error).__name__}: {error}",
                    hint="Check the key service, and the permissions of this process in it.",
                ) from error
            key_id, data_key = await asyncio.to_thread(keys.wrap, raw, context)
            done += await tenant_keys.rewrap(session, key, data_key, key_id)
        cursor = (wrapped[-1].tenant, wrapped[-1].number)
    return done


async def _new_key(keys: MasterKeys, tenant: str, number: int) -> WrappedKey:
    raw = AESGCM.generate_key(256)
    key_id, wrapped = await asyncio.to_thread(keys.wrap, raw, key_context(tenant, number))
    return WrappedKey(tenant, number, wrapped, key_id)


def _forget(session: Session) -> None:
    if session.codec is not None:
        session.codec.forget()
