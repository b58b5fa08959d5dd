"""The address of RabbitMQ: one address or several, checked before a connection is opened, shown without credentials."""

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
    """The addresses in `url`, each with a heartbeat in seconds and the connection's name filled in.

    Options of an address stay in its query: `heartbeat`, `name`, and for TLS `cafile`, `capath`, `certfile`,
    `keyfile`, `no_verify_ssl`. Raises ConfigurationError with a message in which no part of the address appears
    that could hold a password.
    """
    texts = re.split(r",\s*(?=amqps?://)", url.strip()) if isinstance(url, str) else list(url)
    addresses = tuple(_address(text, number) for number, text in enumerate(texts, 1))
    if not addresses:
        raise ConfigurationError("no RabbitMQ address was given", hint=HINT)
    defaults = {"heartbeat": str(heartbeat), "name": client}
    return tuple(address.with_query({**defaults, **address.query}) for address in addresses)


def shown(address: URL) -> str:
    """An address as it may appear in logs: no user, no password, no options."""
    vhost = address.path.lstrip("/") or "/"
    return f"{address.scheme}://{address.host}:{address.port or default_port(address)} (vhost {vhost})"


def default_port(address: URL) -> int:
    return 5671 if address.scheme == "amqps" else 5672


def _address(text: str, number: int) -> URL:
    try:
        address = URL(text.strip())
    except ValueError:  # its text may quote a piece of the password
        raise ConfigurationError(f"RabbitMQ address {number} is not a URL", hint=HINT) from None
    if address.scheme not in ("amqp", "amqps") or not address.host:
        raise ConfigurationError(f"RabbitMQ address {number} is not an amqp:// or amqps:// URL", hint=HINT)
    return address
