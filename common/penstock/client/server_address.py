"""The check of an API's address before a token is sent to it: it must use TLS, or be on this machine."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from penstock.errors import ConfigurationError
from penstock.language.terms.setting_values import LOOPBACK


def checked_address(url: str) -> str:
    """Return the address. Raises ConfigurationError if it is invalid, or if the token could be read on its way."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(
            f"{url!r} is not an address of a server", hint="Such as https://penstock.example.org."
        )
    if parts.scheme == "http" and parts.hostname not in LOOPBACK and not _plain_is_allowed():
        raise ConfigurationError(
            f"{url} does not use TLS, so the token could be intercepted",
            hint="Use https. On a private network, set PENSTOCK_PLAIN_HTTP=1.",
        )
    return url


def _plain_is_allowed() -> bool:
    return os.environ.get("PENSTOCK_PLAIN_HTTP") == "1"
