"""The names that an outside caller may pass at a public entry point: a tenant, the key of an event or of a start (a
message's id), and the sender (a message's app id). All entry points use this check, so they accept the same names."""

from __future__ import annotations

import re

from penstock.errors import InvalidInput

TENANT = r"^[a-z0-9][a-z0-9_-]{0,62}$"
"""The pattern of a tenant. A tenant is a segment of namespaces, and of the patterns over these, so it has neither `::`
nor `*`."""
LONGEST = 1000
"""The maximum size of a key or a source in bytes of UTF-8. AMQP has room for 255. A PostgreSQL index holds two of
these and their trigger."""

SECRET = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
"""The pattern of a secret's name, as expressions write it."""

_TENANT = re.compile(TENANT)


def check_tenant(tenant: object) -> str:
    """Return the tenant. Raises InvalidInput if a namespace cannot begin with it."""
    if not isinstance(tenant, str) or not _TENANT.fullmatch(tenant):
        raise InvalidInput(
            f"{_short(tenant)} is not a valid tenant name",
            hint="Use 1 to 63 characters of a-z, 0-9, _ and -. The first is a letter or a digit.",
        )
    return tenant


def check_name(name: object, label: str) -> str:
    """Return a key, an id or a source unchanged. `label` is its name in the error. Raises InvalidInput if it is empty,
    too long, or text that PostgreSQL cannot store."""
    if not isinstance(name, str):
        raise InvalidInput(f"{label} is not text: {_short(name)}", hint="Send it as text.")
    if not name:
        raise InvalidInput(
            f"{label} is empty",
            hint="If there is no key, omit it: then each request counts as a new one.",
        )
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise InvalidInput(f"{label} is not valid Unicode: {_short(name)}", hint="Send UTF-8.") from None
    if size > LONGEST:
        raise InvalidInput(
            f"{label} has {size:,} bytes; at most {LONGEST} are taken",
            hint="Send a hash of it, such as SHA-256.",
        )
    if "\0" in name:
        raise InvalidInput(
            f"{label} holds a NUL character, which PostgreSQL refuses: {_short(name)}", hint="Remove it."
        )
    return name


def _short(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def schema_name(name: str) -> str:
    """Return the name of a schema that PostgreSQL stores unchanged. Raises ValueError for one that it refuses or
    truncates."""
    if name.lower().startswith("pg_"):
        raise ValueError("PostgreSQL keeps names that begin with pg_ for itself")
    if len(name.encode()) > 63:
        raise ValueError("PostgreSQL's names have 63 bytes at most")
    return name
