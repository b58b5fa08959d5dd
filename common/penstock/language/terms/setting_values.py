"""The types of values that settings have: identifiers, durations, addresses and networks."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from penstock.language.terms.visible_text import visible


def _identifier(value: str) -> str:
    if not value.replace("_", "").replace(".", "").replace("-", "").isalnum():
        raise ValueError("letters, digits, '_', '-' and '.' only")
    return value


def shown_text(value: str) -> str:
    """Return text that a terminal and a page show as it is. Raises ValueError for control characters."""
    if visible(value) != value or "\n" in value or "\t" in value:
        raise ValueError("a line of text, without control characters")
    return value


def lowered(value: object) -> object:
    """Return text in lower case, and anything else as it is."""
    return value.lower() if isinstance(value, str) else value


Identifier = Annotated[str, Field(min_length=1, max_length=63), AfterValidator(_identifier)]
Seconds = Annotated[float, Field(gt=0)]
LogLevel = Literal["debug", "info", "warning", "error", "critical"]
LOOPBACK = ("127.0.0.1", "::1", "localhost")
"""The addresses that only this machine can reach."""


def host_name(netloc: str) -> str | None:
    """Return the host name in a Host header or an origin, without its port. Return None if there is none, and "" if it
    is malformed."""
    try:
        return urlsplit(f"//{netloc}").hostname
    except ValueError:
        return ""


def is_tls_or_local(address: str) -> bool:
    """Return whether traffic to this address is safe from readers and changes on the way: over TLS, or on this
    machine."""
    parts = urlsplit(address)
    local = parts.scheme == "http" and parts.hostname in LOOPBACK
    return local or (parts.scheme == "https" and bool(parts.hostname))


def networks(text: str) -> list[IPv4Network | IPv6Network]:
    """Return the networks of a list such as `10.0.0.0/8, ::1`. An address is a network of one. Raises ValueError for a
    word that is neither."""
    return [ip_network(word.strip()) for word in text.split(",") if word.strip()]


def _networks_of(text: str) -> str:
    networks(text)
    return text


def _trace_address(value: str) -> str:
    if not (value.startswith(("http://", "https://")) and "{trace_id}" in value):
        raise ValueError("should be an http(s) address with {trace_id} in it")
    return value


def _public_address(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("should be an http(s) address, such as https://penstock.example.org/penstock")
    if parts.username is not None or "//" in parts.path or not parts.path.isascii() or "%" in parts.path:
        raise ValueError(
            "has a user name, `//`, `%` or a non-ASCII character, which no browser sends in this form"
        )
    return value.rstrip("/")


Networks = Annotated[str, AfterValidator(_networks_of)]
TraceAddress = Annotated[str, AfterValidator(_trace_address)]
PublicAddress = Annotated[str, AfterValidator(_public_address)]
"""A pydantic type for the address that browsers use, without a slash at its end. It may have a path."""
