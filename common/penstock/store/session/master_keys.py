"""The master keys: from the environment, from a file, or of a key service. They wrap the data keys of secrets and of
encrypted tenants, and nothing else."""

from __future__ import annotations

import base64
import binascii
import hashlib
import importlib
import os
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from penstock.errors import ConfigurationError
from penstock.settings import Settings

NONCE = 12
"""Bytes of a nonce (NIST SP 800-38D)."""
SERVICE = "kms "
"""The prefix of the id under which a process has a key service."""


class MasterKeys(Protocol):
    """The interface of the key service that `PENSTOCK_SECRETS_KMS` names, which is called once without arguments. Its
    functions may block: they are called in a thread."""

    def wrap(self, data_key: bytes, context: bytes) -> tuple[str, bytes]:
        """Return the id of the key that was used, and `data_key` encrypted and bound to `context`."""

    def unwrap(self, key_id: str, wrapped: bytes, context: bytes) -> bytes:
        """Return the data key. May raise any error."""


class LocalKeys:
    """Keys of AES-256-GCM. The first encrypts, and the others are only used to decrypt."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        self._keys = {hashlib.sha256(key).hexdigest()[:12]: AESGCM(key) for key in keys}
        self._newest = next(iter(self._keys))

    @property
    def ids(self) -> list[str]:
        """Return the ids of the keys, the newest first."""
        return list(self._keys)

    def wrap(self, data_key: bytes, context: bytes) -> tuple[str, bytes]:
        return self._newest, seal(self._keys[self._newest], data_key, context)

    def unwrap(self, key_id: str, wrapped: bytes, context: bytes) -> bytes:
        if key_id not in self._keys:
            raise ConfigurationError(
                f"a secret is under the master key {key_id}, which this process does not have",
                hint="Restart this process with that key among its master keys, the newest key first. If the "
                "key is lost, set the secret again.",
            )
        return unseal(self._keys[key_id], wrapped, context)


def seal(key: AESGCM, text: bytes, context: bytes) -> bytes:
    """Encrypt a text under a new nonce, which is prefixed to the result."""
    nonce = os.urandom(NONCE)
    return nonce + key.encrypt(nonce, text, context)


def unseal(key: AESGCM, sealed: bytes, context: bytes) -> bytes:
    """Decrypt a sealed text. Raises ConfigurationError if it was not sealed under this key for this context."""
    try:
        return key.decrypt(sealed[:NONCE], sealed[NONCE:], context)
    except (InvalidTag, ValueError):
        raise ConfigurationError(
            "a secret in the database was changed after it was stored", hint="Set it again."
        ) from None


def master_keys(settings: Settings) -> MasterKeys:
    """Return the configured master keys. Raises ConfigurationError if none is configured, or in more than one way."""
    key = settings.secrets_key.get_secret_value() if settings.secrets_key else None
    file = str(settings.secrets_key_file) if settings.secrets_key_file else None
    if sum(source is not None for source in (key, file, settings.secrets_kms)) > 1:
        raise ConfigurationError(
            "master keys of secrets are configured in more ways than one",
            hint="Set only one of PENSTOCK_SECRETS_KEY, PENSTOCK_SECRETS_KEY_FILE, PENSTOCK_SECRETS_KMS.",
        )
    return _opened(key, file, settings.secrets_kms)


def key_problem(settings: Settings) -> ConfigurationError | None:
    """Return the reason why this process has no master key that it can use; None if it has one."""
    try:
        master_keys(settings)
    except ConfigurationError as error:
        return error
    return None


def held_keys(settings: Settings) -> list[str]:
    """Return the ids of the configured master keys, the newest first; none if no master key can be used. A key service
    counts as one key with the id `SERVICE` and its name: all that use the service reach the same keys."""
    if settings.secrets_kms is not None:
        return [f"{SERVICE}{settings.secrets_kms}"]
    try:
        keys = master_keys(settings)
    except ConfigurationError:
        return []
    return keys.ids if isinstance(keys, LocalKeys) else []


@lru_cache(maxsize=8)
def _opened(key: str | None, file: str | None, kms: str | None) -> MasterKeys:
    if kms is not None:
        return _named(kms)
    if file is not None:
        try:
            with open(file, encoding="ascii") as lines:
                return LocalKeys(_decoded(lines.read().split()))
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"PENSTOCK_SECRETS_KEY_FILE cannot be read: {error}",
                hint="Check its path and permissions. It must have keys in base64, one in a line, the newest first.",
            ) from None
    if key is not None:
        return LocalKeys(_decoded(key.replace(",", " ").split()))
    raise ConfigurationError(
        "there is no master key for secrets",
        hint="Create a key with `openssl rand -base64 32`. Set PENSTOCK_SECRETS_KEY (or "
        "PENSTOCK_SECRETS_KEY_FILE) to it for workers, executors, the API and the command line.",
    )


def _decoded(words: Sequence[str]) -> list[bytes]:
    keys = []
    for word in words:
        try:
            keys.append(base64.b64decode(word, validate=True))
        except binascii.Error:
            keys.append(b"")
    if not keys or any(len(key) != 32 for key in keys):
        raise ConfigurationError(
            "a master key for secrets is not 32 bytes in base64", hint="Make one: openssl rand -base64 32"
        )
    return keys


def _named(name: str) -> MasterKeys:
    module, _, attribute = name.partition(":")
    try:
        keys: Any = getattr(importlib.import_module(module), attribute)()
    except Exception as error:
        raise ConfigurationError(
            f"PENSTOCK_SECRETS_KMS={name} cannot be used: {type(error).__name__}: {error}",
            hint="Name a class (or a function that makes one) as module:name, with `wrap` and `unwrap`: docs/secrets.md.",
        ) from None
    if not callable(getattr(keys, "wrap", None)) or not callable(getattr(keys, "unwrap", None)):
        raise ConfigurationError(f"{name} has no `wrap` and `unwrap`", hint="See docs/secrets.md.")
    return keys  # type: ignore[no-any-return]
