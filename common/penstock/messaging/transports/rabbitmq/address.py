"""The addresses of RabbitMQ: checked before a connection is opened, and shown without credentials."""

from __future__ import annotations

import re
from collections.abc import Sequence

from yarl import URL

from penstock.errors import ConfigurationError

HINT = (
    "Write amqp://user:password@host:5672/vhost (amqps:// for TLS), several separated by commas, "
    "and percent-encode special characters in the password (/ is %2F, @ is %40)."
)


def parse(url: str | Sequence[str], *, heartbeat: int, client: str) -> tuple[URL, ...]:
    """Return the addresses in `url`, with a heartbeat in seconds and a connection name as defaults.

    Options of an address stay in its query: `heartbeat`, `name`, and for TLS `cafile`, `capath`, `certfile`,
    `keyfile`, `no_verify_ssl`. Raises ConfigurationError with a message that contains no part of an address that
    could hold a password.
    """
    texts = re.split(r",\s*(?=amqps?://)", url.strip()) if isinstance(url, str) else list(url)
    addresses = tuple(_address(text, number) for number, text in enumerate(texts, 1))
    if not addresses:
        raise ConfigurationError("no RabbitMQ address was given", hint=HINT)
    defaults = {"heartbeat": str(heartbeat), "name": client}
    return tuple(address.with_query({**defaults, **address.query}) for address in addresses)


def shown(address: URL) -> str:
    """Return an address as it may appear in logs: without user, password and options."""
    vhost = address.path.lstrip("/") or "/"
    return f"{address.scheme}://{address.host}:{address.port or default_port(address)} (vhost {vhost})"


def default_port(address: URL) -> int:
    return 5671 if address.scheme == "amqps" else 5672


def _address(text: str, number: int) -> URL:
    try:
        address = URL(text.strip())
    except ValueError:  # the error's text may contain a part of the password
        raise ConfigurationError(f"RabbitMQ address {number} is not a URL", hint=HINT) from None
    if address.scheme not in ("amqp", "amqps") or not address.host:
        raise ConfigurationError(f"RabbitMQ address {number} is not an amqp:// or amqps:// URL", hint=HINT)
    return address
