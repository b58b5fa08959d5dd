"""The receiver of a signal: a durable function, named by its id or by the idempotency key of its start."""

from __future__ import annotations

from uuid import UUID

from penstock.errors import InvalidInput, NotFound
from penstock.language.terms.outside_names import check_name


def check_receiver(id: UUID | None, key: str | None, tenant: str | None = None) -> None:
    """Check how a signal names its receiver: by an id, or by a key and its tenant. Raises InvalidInput."""
    if (id is None) == (key is None):
        raise InvalidInput(
            "a signal has one receiver, which is named by its id or by its key",
            hint='Write signal(id, "paid"), or signal(key="order-7", name="paid") with the key of its start.',
        )
    if key is not None:
        check_name(key, "the key")
    elif not isinstance(id, UUID):
        raise InvalidInput(f"{id!r:.60} is not the id of an execution", hint="Give a UUID: UUID(text).")
    elif tenant is not None:
        raise InvalidInput(
            "a tenant belongs to a key, and this signal names its receiver by an id",
            hint="Leave the tenant out.",
        )


def unknown_key(key: str, tenant: str) -> NotFound:
    """Return the error for a key with which nothing was started."""
    return NotFound(
        f"no execution of tenant {tenant} was started with the key {key!r:.80}",
        hint="Give the key of its start, `start(..., key=)`, and the tenant of that start. Keys are kept for "
        "PENSTOCK_KEY_RETENTION_DAYS, and longer while their execution goes on. A re-run has no key: give its id.",
    )
