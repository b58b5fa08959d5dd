"""The formats that are enforced. All other formats (`email`, `uri`, `password`, ...) only describe."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time
from ipaddress import IPv4Address, IPv6Address
from uuid import UUID

FORMATS: dict[str, Callable[[str], object]] = {
    "date-time": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "uuid": UUID,
    "ipv4": IPv4Address,
    "ipv6": IPv6Address,
}
"""The functions by format. Each raises ValueError for a text that does not have the format."""


def fits(name: str, text: str) -> bool:
    """Return whether the text has the format. Every text has a format that is not enforced."""
    read = FORMATS.get(name)
    if read is None:
        return True
    try:
        read(text)
    except ValueError:
        return False
    return True
