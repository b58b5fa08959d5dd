"""Paths within events, by which their bursts and windows are grouped, and the longest time of these."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator

from penstock.language.terms.options import Items, Wrong
from penstock.language.terms.run_labels import KEY

LONGEST_S = 86_400
"""The maximum time of a burst or a window, in seconds."""
_PATH = re.compile(r"(payload|event)(\.[A-Za-z0-9_-]+)*")
_BURST_PATH = re.compile(rf"{_PATH.pattern}|labels\.{KEY}")


def at_most_a_day(seconds: float) -> float:
    """Return `seconds`. Raises Wrong for more than a day."""
    if seconds > LONGEST_S:
        raise Wrong("is longer than a day", "Write at most '1d'.")
    return seconds


def _paths(value: object) -> object:
    hint = "Write a path such as 'payload.doc' or 'event.tenant'."
    return _checked(value, _PATH, "is not a path of an event", hint)


def _burst_paths(value: object) -> object:
    hint = "Write a path such as 'payload.doc' or 'event.tenant', or a label of the rule: 'labels.customer'."
    return _checked(value, _BURST_PATH, "is not a path of an event or a label", hint)


def _checked(value: object, form: re.Pattern[str], fault: str, hint: str) -> object:
    several = list(value) if isinstance(value, list | tuple) else [value]
    for path in several:
        if not isinstance(path, str) or not form.fullmatch(path):
            raise Wrong(f"{fault}: {path!r}", hint)
    if len(set(several)) < len(several):
        raise Wrong("names a path twice", None)
    return tuple(several)


EventPaths = Annotated[Items[str], BeforeValidator(_paths)]
"""A pydantic type: one path, or several."""
BurstPaths = Annotated[Items[str], BeforeValidator(_burst_paths)]
"""A pydantic type: one path or label, or several."""
