"""Sources of events. The prefix of a source names the door that the event came through, and no other door writes that prefix.

An idempotency key belongs to its source. A foreign producer could take the keys of a signed webhook if it could name that source.
"""

from __future__ import annotations

from penstock.errors import InvalidInput
from penstock.language.terms.outside_names import check_name

API = "api"
WEBHOOK, MESSAGE = "webhook:", "amqp:"
_RESERVED = (API, WEBHOOK.rstrip(":"), MESSAGE.rstrip(":"))


def of_webhook(name: str) -> str:
    """Return the source of what a signed call of this webhook publishes."""
    return f"{WEBHOOK}{name}"


def of_message(app_id: str | None, user_id: str | None = None) -> str:
    """Return the source of a message from the broker. `user_id`: the producer, where the settings name producers."""
    return MESSAGE + "/".join(part for part in (user_id, app_id) if part)


def check_source(source: object) -> str:
    """Return the source that a program names. Raises InvalidInput where only a door of Penstock may write it."""
    name = check_name(source, "the source")
    if name in _RESERVED or name.startswith(tuple(f"{word}:" for word in _RESERVED)):
        raise InvalidInput(
            f"the source {name[:60]!r} is reserved",
            hint="Sources that begin with api, webhook: or amqp: name a door of Penstock. Choose another name.",
        )
    return name
