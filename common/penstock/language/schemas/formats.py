"""The formats that are enforced. Others (`email`, `uri`, `password`, ...) describe and do not refuse."""

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
"""Name -> a function that raises ValueError for a text that is not of this format."""


def fits(name: str, text: str) -> bool:
    """Return whether the text is of the format. A format that is not enforced fits always."""
    read = FORMATS.get(name)
    if read is None:
        return True
    try:
        read(text)
    except ValueError:
        return False
    return True
