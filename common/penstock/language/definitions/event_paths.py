"""Paths within events, by which their bursts and windows are grouped, and the longest time of these."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator

from penstock.language.terms.options import Items, Wrong

LONGEST_S = 86_400
"""The maximum time of a burst or a window, in seconds."""
_PATH = re.compile(r"(payload|event)(\.[A-Za-z0-9_-]+)*")


def at_most_a_day(seconds: float) -> float:
    """Return `seconds`. Raises Wrong for more than a day."""
    if seconds > LONGEST_S:
        raise Wrong("is longer than a day", "Write at most '1d'.")
    return seconds


def _paths(value: object) -> object:
    several = list(value) if isinstance(value, list | tuple) else [value]
    for path in several:
        if not isinstance(path, str) or not _PATH.fullmatch(path):
            raise Wrong(
                f"is not a path of an event: {path!r}",
                "Write a path such as 'payload.doc' or 'event.tenant'.",
            )
    if len(set(several)) < len(several):
        raise Wrong("names a path twice", None)
    return tuple(several)


EventPaths = Annotated[Items[str], BeforeValidator(_paths)]
"""A pydantic type: one path, or several."""
