"""The marks by which a sealed value is told from a clear one. A client without the libraries of ciphers needs them too."""

from __future__ import annotations

KEY = "$sealed"
"""The member of a JSON object that holds a token."""
PREFIX = f"{KEY}:"
"""The beginning of a text that is a token."""
_MARK = KEY.encode()


def looks_sealed(value: object) -> bool:
    """Return whether a text or bytes may hold a token."""
    if isinstance(value, str):
        return KEY in value
    return isinstance(value, bytes) and _MARK in value
