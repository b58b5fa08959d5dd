"""The marks by which a sealed value is recognized. A client without a cipher library needs them too."""

from __future__ import annotations

KEY = "$sealed"
"""The member of a JSON object that contains a token."""
PREFIX = f"{KEY}:"
"""The beginning of a text that is a token."""
_MARK = KEY.encode()


def looks_sealed(value: object) -> bool:
    """Return whether a text or bytes may contain a token."""
    if isinstance(value, str):
        return KEY in value
    return isinstance(value, bytes) and _MARK in value
