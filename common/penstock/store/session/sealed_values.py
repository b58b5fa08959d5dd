"""The form of an encrypted value in the database, and its seal: AES-256-GCM under a data key of its tenant.

A JSON value becomes `{"$sealed": TOKEN}`. Where the database reads some members of an object itself, these stay in clear beside
`$sealed`, which then holds the whole object. A text becomes `$sealed:TOKEN`. A token is `NUMBER.TENANT.BASE64`: the number of
the data key, its tenant, and the nonce with the ciphertext. Tenant, number and kind are authenticated, so that no token passes
for one of another tenant.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import orjson
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from penstock.errors import ConfigurationError
from penstock.store.session.master_keys import seal, unseal
from penstock.store.session.sealed_marks import KEY, PREFIX

_TOKEN = re.compile(r"(\d{1,9})\.([a-z0-9][a-z0-9_-]{0,62})\.([A-Za-z0-9_-]+)=*")

Number = tuple[str, int]
"""The tenant and the number of a data key."""


class DataKey(NamedTuple):
    """An open data key. `digests` is the key of the tenant's digests, and stays the same after a rotation."""

    number: Number
    cipher: AESGCM
    digests: bytes


class Unknown(Exception):
    """Raised if the data key of a token is not open in this process."""

    def __init__(self, number: Number) -> None:
        super().__init__(number)
        self.number = number


class Ring(Protocol):
    """The open data keys of a process."""

    def cipher(self, number: Number) -> AESGCM | None:
        """Return a data key, or None if it can never be opened here. Raises Unknown if it is not open yet."""


def token(key: DataKey, kind: str, content: bytes) -> str:
    """Seal bytes. `kind` is `json` or `text`."""
    tenant, number = key.number
    sealed = seal(key.cipher, content, _context(key.number, kind))
    return f"{number}.{tenant}.{base64.urlsafe_b64encode(sealed).decode()}"


def sealed_json(key: DataKey, text: str) -> str:
    """Seal a JSON text, and return the sealed JSON text."""
    return f'{{"{KEY}":"{token(key, "json", text.encode())}"}}'


def sealed_value(key: DataKey, value: Any) -> dict[str, Any]:
    """Seal a JSON value, and return the sealed value."""
    return {KEY: token(key, "json", orjson.dumps(value))}


def sealed_text(key: DataKey, text: str) -> str:
    """Seal a text, and return the sealed text."""
    return PREFIX + token(key, "text", text.encode())


def sealed_bytes(key: DataKey, content: bytes) -> bytes:
    """Seal bytes, such as the body of a message, and return the sealed bytes."""
    return PREFIX.encode() + token(key, "text", content).encode()


def keyed_digest(key: DataKey, text: str) -> str:
    """Return a digest that is equal for equal texts of a tenant. Only the keys of the tenant can compute it."""
    return hmac.digest(key.digests, text.encode(), "sha256").hex()


def digest_key(data_key: bytes) -> bytes:
    """Derive the key of a tenant's digests from the tenant's first data key."""
    return hashlib.sha256(b"penstock digests\0" + data_key).digest()


def opened(ring: Ring, value: Any, tenant: str | None) -> Any:
    """Return a text or bytes with its sealed values open. A token of another tenant than `tenant` (None: any) stays
    sealed, and so does an invalid token. Raises Unknown for a value under a data key that `ring` does not have."""
    if isinstance(value, bytes):
        return _opened_bytes(ring, value, tenant)
    if value.startswith(PREFIX):
        content = _content(ring, value.removeprefix(PREFIX), "text", tenant)
        return value if content is None else content.decode()
    try:
        document = orjson.loads(value)
    except orjson.JSONDecodeError:
        return value
    if isinstance(document, dict) and len(document) == 1 and isinstance(document.get(KEY), str):
        content = _content(ring, document[KEY], "json", tenant)
        return value if content is None else content.decode()
    return orjson.dumps(_walked(ring, document, tenant)).decode()


def _opened_bytes(ring: Ring, value: bytes, tenant: str | None) -> bytes:
    if value.startswith(PREFIX.encode()):
        text = value.decode("latin-1").removeprefix(PREFIX)
        content = _content(ring, text, "text", tenant)
        return value if content is None else content
    return value


def _walked(ring: Ring, value: Any, tenant: str | None) -> Any:
    if isinstance(value, str):
        if value.startswith(PREFIX):
            content = _content(ring, value.removeprefix(PREFIX), "text", tenant)
            return value if content is None else content.decode()
        return value
    if isinstance(value, list):
        return [_walked(ring, item, tenant) for item in value]
    if not isinstance(value, dict):
        return value
    if isinstance(value.get(KEY), str):
        content = _content(ring, value[KEY], "json", tenant)
        if content is not None:
            inner = orjson.loads(content)
            if len(value) == 1 or not isinstance(inner, Mapping):
                return inner
            clear = {name: _walked(ring, item, tenant) for name, item in value.items() if name != KEY}
            return {**clear, **inner}
    return {name: _walked(ring, item, tenant) for name, item in value.items()}


def _content(ring: Ring, text: str, kind: str, tenant: str | None) -> bytes | None:
    """Return the content of a token; None if it cannot be opened for this tenant."""
    match = _TOKEN.fullmatch(text)
    if match is None or (tenant is not None and match[2] != tenant):
        return None
    number = (match[2], int(match[1]))
    cipher = ring.cipher(number)
    if cipher is None:
        return None
    try:
        sealed = base64.urlsafe_b64decode(text.rpartition(".")[2])
        return unseal(cipher, sealed, _context(number, kind))
    except (ConfigurationError, binascii.Error):
        return None


def _context(number: Number, kind: str) -> bytes:
    return f"penstock value\0{number[0]}\0{number[1]}\0{kind}".encode()
