"""The secrets store: texts that actions receive and that cannot be read back. Each secret is encrypted under its own
data key, and that under the master key. Tenant and name are authenticated too, so that no secret can replace another
one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from penstock.errors import ConfigurationError, Conflict, InvalidInput, NotFound
from penstock.language.terms.options import did_you_mean
from penstock.language.terms.outside_names import SECRET, check_tenant
from penstock.language.terms.redaction import SHORTEST
from penstock.operate import encryption
from penstock.settings import Settings
from penstock.store.access import secrets as store
from penstock.store.access.secrets import Sealed, SecretSummary
from penstock.store.processes import key_holders
from penstock.store.processes.key_holders import titles
from penstock.store.session.database import Session, retried
from penstock.store.session.master_keys import MasterKeys, held_keys, master_keys, seal, unseal

LONGEST = 64 * 1024
"""The maximum bytes of a secret."""
AT_ONCE = 100
MOST_NAMES = 10
"""The maximum number of definitions that the notice about a deleted secret names."""


async def put(session: Session, tenant: str, name: str, value: str, *, by: str) -> SecretSummary:
    """Set a secret, and return its summary. Running executions keep the former value. Raises InvalidInput if the
    tenant, the name or the value is not valid, and ConfigurationError if this process has no master key."""
    check_tenant(tenant)
    check_secret(name, value)
    return await store.put(session, await sealed(session.settings, tenant, name, value), by)


def check_secret(name: str, value: str) -> None:
    """Check the name and the value of a secret. Raises InvalidInput."""
    if not SECRET.fullmatch(name):
        raise InvalidInput(
            f"{name!r} is not a valid name of a secret", hint="Use a-z, A-Z, 0-9 and _, such as db_password."
        )
    raw = value.encode()
    if len(value) < SHORTEST or len(raw) > LONGEST or "\0" in value:
        raise InvalidInput(
            f"a secret has at least {SHORTEST} characters and at most {LONGEST:,} bytes, without NUL",
            hint="Set a longer secret: a short text also occurs in ordinary text, so it could not be masked in logs.",
        )


async def sealed(settings: Settings, tenant: str, name: str, value: str) -> Sealed:
    """Seal a value under its own data key. Raises ConfigurationError without a master key, or if the key service
    refuses."""
    context = _context(tenant, name)
    data_key = AESGCM.generate_key(256)
    key_id, wrapped = await _wrap(master_keys(settings), data_key, context)
    return Sealed(tenant, name, seal(AESGCM(data_key), value.encode(), context), wrapped, key_id)


async def opened(settings: Settings, secret: Sealed) -> str:
    """Open a sealed value. Raises ConfigurationError if this process cannot decrypt it."""
    context = _context(secret.tenant, secret.name)
    data_key = await _unwrap(master_keys(settings), secret, context)
    return unseal(AESGCM(data_key), secret.sealed, context).decode()


async def delete(session: Session, tenant: str, name: str) -> str | None:
    """Delete a secret. An execution that needs it fails from now on. Return a notice with the enabled definitions that
    refer to it, or None if there are none. Raises NotFound if the tenant has no such secret."""
    users = await store.users(session, tenant, name) if SECRET.fullmatch(name) else []
    if not await store.delete(session, tenant, name):
        names = [secret.name for secret in await store.listed(session, [tenant])]
        raise NotFound(f"tenant {tenant} has no secret {name!r}", hint=did_you_mean(name, names))
    return _notice(tenant, name, users)


def _notice(tenant: str, name: str, users: Sequence[str]) -> str | None:
    if not users:
        return None
    unnamed = f" and {len(users) - MOST_NAMES:,} more" if len(users) > MOST_NAMES else ""
    return (
        f"These definitions still use the secret {name}: {', '.join(users[:MOST_NAMES])}{unnamed}. Their executions of tenant "
        f"{tenant} fail until the secret is set again: penstock secrets set {name} --tenant {tenant}"
    )


async def rotate(session: Session, *, force: bool = False) -> int:
    """Wrap every data key, of secrets and of encrypted tenants, under the newest master key. Return the number that
    were under another one. Secrets and values stay the same, and services may run meanwhile. Raises ConfigurationError
    if this process has no master key or cannot decrypt a secret. Raises Conflict if a live process may lack the newest
    key, unless `force` is set."""
    keys = master_keys(session.settings)
    if not force:
        await _check_holders(session)
    newest, _ = await _wrap(keys, os.urandom(32), b"")
    done, cursor = 0, ("", "")
    while secrets := await store.under_other_keys(session, newest, cursor, AT_ONCE):
        for secret in secrets:
            context = _context(secret.tenant, secret.name)
            key_id, wrapped = await _wrap(keys, await _unwrap(keys, secret, context), context)
            done += await store.rewrap(session, secret, wrapped, key_id)
        cursor = (secrets[-1].tenant, secrets[-1].name)
    return done + await encryption.rewrap(session)


async def _check_holders(session: Session) -> None:
    newest = held_keys(session.settings)[0]
    holders = await key_holders.live(session, session.settings.stale_threshold)
    if lacking := [holder for holder in holders if holder.lacks(newest)]:
        raise Conflict(
            f"these services lack the newest master key, {newest}: {titles(lacking)}. After a rotation "
            "they could not read any secret",
            hint="Restart these services with this key among their master keys. `--force` rotates without this check.",
        )


async def reveal(session: Session, tenant: str, names: Collection[str]) -> Mapping[str, str]:
    """Decrypt secrets of a tenant. Raises NotFound if the tenant has no such secret, and ConfigurationError if this
    process lacks its master key."""
    secrets = await retried(lambda: store.find(session, tenant, names), deadline=30)
    return await _opened(session, tenant, names, secrets)


async def reveal_to_attempt(
    session: Session, execution: UUID, process: UUID, tenant: str, names: Collection[str]
) -> Mapping[str, str]:
    """Decrypt the secrets that the parameters of an execution refer to, for the process that is about to run it. Raises
    NotFound if the tenant has no such secret, and ConfigurationError if this process lacks its master key."""
    secrets = await retried(lambda: store.of_attempt(session, execution, process, names), deadline=30)
    return await _opened(session, tenant, names, secrets)


async def _opened(
    session: Session, tenant: str, names: Collection[str], secrets: Sequence[Sealed]
) -> Mapping[str, str]:
    master_keys(session.settings)  # raises first if no master key is configured
    if missing := sorted(set(names) - {secret.name for secret in secrets}):
        raise missing_secrets(tenant, missing)
    return {secret.name: await opened(session.settings, secret) for secret in secrets}


def missing_secrets(tenant: str, names: Sequence[str]) -> NotFound:
    """Return the error of an attempt that needs secrets which its tenant does not have."""
    return NotFound(
        f"tenant {tenant} has no secret {', '.join(names)}",
        hint=f"Set it: penstock secrets set {names[0]} --tenant {tenant}",
    )


async def _wrap(keys: MasterKeys, data_key: bytes, context: bytes) -> tuple[str, bytes]:
    return await asyncio.to_thread(keys.wrap, data_key, context)


async def _unwrap(keys: MasterKeys, secret: Sealed, context: bytes) -> bytes:
    try:
        return await asyncio.to_thread(keys.unwrap, secret.master_key, secret.data_key, context)
    except ConfigurationError:
        raise
    except Exception as error:
        raise ConfigurationError(
            f"the key service could not decrypt secret {secret.name}: {type(error).__name__}: {error}",
            hint="Check the key service, and the permissions of this process in it.",
        ) from error


def _context(tenant: str, name: str) -> bytes:
    return f"penstock secret\0{tenant}\0{name}".encode()
