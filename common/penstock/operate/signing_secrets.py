"""The secrets that sign the calls of webhooks and subscriptions. Signing secrets are sealed like all secrets, and
belong to no tenant, so that no action can use one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.errors import NotFound
from penstock.operate import secrets
from penstock.settings import Settings
from penstock.store.access import secrets as store
from penstock.store.access.secrets import Sealed
from penstock.store.session.database import Session, Transaction

NO_TENANT = ""
CACHED_SECRETS = 1000

_cache: dict[Sealed, str] = {}
"""Decrypted secrets by their sealed form, so that a key service is called once for each. A secret that was set again
has another sealed form."""


def _name(kind: str, name: str) -> str:
    return f"{kind}:{name}"


async def sealed(settings: Settings, kind: str, name: str, value: str) -> Sealed:
    """Seal the secret of a webhook or a subscription; `kind` is one of these words. Raises ConfigurationError without a
    master key, or if the key service refuses."""
    return await secrets.sealed(settings, NO_TENANT, _name(kind, name), value)


async def put(tx: Transaction, secret: Sealed, by: str) -> None:
    """Store a sealed secret in the transaction that changes its webhook or subscription."""
    await store.put(tx, secret, by)


async def of_webhook(session: Session, name: str) -> str:
    """Return the secret of a webhook. Raises NotFound if the webhook has no secret, and ConfigurationError if this
    process cannot decrypt it."""
    for secret in await store.find(session, NO_TENANT, [_name("webhook", name)]):
        return await opened(session.settings, secret)
    raise NotFound(
        f"webhook {name!r} has no secret", hint=f"Set it: penstock webhooks set {name} --secret ..."
    )


async def of_subscriptions(session: Session, names: Sequence[str]) -> Mapping[str, Sealed]:
    """Return the sealed secrets of these subscriptions, by their names."""
    return {secret.name.partition(":")[2]: secret for secret in await store.of_subscriptions(session, names)}


async def opened(settings: Settings, secret: Sealed) -> str:
    """Decrypt a sealed secret, once in a process. Raises ConfigurationError if this process cannot decrypt it."""
    if secret not in _cache:
        if len(_cache) >= CACHED_SECRETS:
            _cache.clear()
        _cache[secret] = await secrets.opened(settings, secret)
    return _cache[secret]
