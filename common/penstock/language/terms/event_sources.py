"""The sources of events. A source's prefix names the entry point of the event, and no other entry point writes that
prefix.

An idempotency key belongs to its source. If a foreign producer could name the source of a signed webhook, it could use
up that webhook's keys.
"""

from __future__ import annotations

from penstock.errors import InvalidInput
from penstock.language.terms.outside_names import check_name
from penstock.run.cut_texts import cut_end

API, ACTION = "api", "action"
WEBHOOK, MESSAGE = "webhook:", "amqp:"
_RESERVED = (API, ACTION, WEBHOOK.rstrip(":"), MESSAGE.rstrip(":"))


def of_webhook(name: str) -> str:
    """Return the source for the events of a signed call of this webhook."""
    return f"{WEBHOOK}{name}"


def of_message(app_id: str | None, user_id: str | None = None) -> str:
    """Return the source of a message from the broker. `user_id` is the producer, if the settings name producers."""
    return MESSAGE + "/".join(part for part in (user_id, app_id) if part)


def check_source(source: object) -> str:
    """Return the source that a program names. Raises InvalidInput for a prefix that only an entry point of Penstock
    may write."""
    name = check_name(source, "the source")
    if name in _RESERVED or name.startswith(tuple(f"{word}:" for word in _RESERVED)):
        raise InvalidInput(
            f"the source {cut_end(name, 60)!r} is reserved",
            hint="Sources that begin with api, action, webhook: or amqp: are those of Penstock itself. Choose another name.",
        )
    return name
