"""Taking known secrets out of a text that is to be shown: a password out of an error, secret parameters out of a log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

MASK = "***"
"""Shown in place of what is secret."""
SHORTEST = 4
"""Characters. Shorter ones tell nothing, and to hide every `1` would hide everything."""


def worth_hiding(values: Iterable[str]) -> tuple[str, ...]:
    """Longest first, so that no piece of one is left."""
    return tuple(sorted({v for v in values if len(v) >= SHORTEST}, key=len, reverse=True))


def concealed(text: str, secrets: Sequence[str]) -> str:
    """The text with MASK in place of each of these, which are as `worth_hiding` gives them."""
    for value in secrets:
        text = text.replace(value, MASK)
    return text
