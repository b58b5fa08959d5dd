"""The parts of windows: which of them an event fits, and its key and time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson

from penstock.language.expressions import condition
from penstock.language.terms.debounce import MISSING, key_of, value_at
from penstock.language.terms.options import Wrong
from penstock.language.terms.windows import PATTERNS, Window, instant_of


@dataclass(frozen=True, slots=True)
class _Part:
    trigger: str
    when: Callable[[Mapping[str, Any]], bool]
    by: Sequence[str]


@dataclass(frozen=True, slots=True)
class CompiledWindow:
    """A compiled window. `identity` is equal for equal windows, and `names` has the name of each part, or None."""

    window: Window
    parts: Sequence[_Part]
    names: Sequence[str | None]
    triggers: Sequence[str]
    timestamp: str | None
    identity: str


@dataclass(frozen=True, slots=True)
class WindowPlace:
    """The place of an event in a window: its key, its time, and the parts that it fits. `is_late`: it was stored too long after
    its time."""

    key: str
    at: datetime
    fits: Sequence[int]
    is_late: bool


def compile_window(body: Mapping[str, Any]) -> CompiledWindow:
    """Compile the window of a rule's body."""
    pattern = next(name for name in PATTERNS if body.get(name))
    parts = body[pattern]
    by = tuple(body.get("by") or ())
    needed = (
        body.get("at_least", 1) if pattern in ("any", "count") else 1 if pattern == "absence" else len(parts)
    )
    return CompiledWindow(
        Window(
            pattern,
            len(parts),
            needed,
            timedelta(seconds=body.get("within") or 0),
            timedelta(seconds=body.get("lateness") or 0),
        ),
        [
            _Part(
                part["trigger"],
                condition(part["when"]) if part.get("when") else _always,
                tuple(part.get("by") or by),
            )
            for part in parts
        ],
        [part.get("name") for part in parts],
        [part["trigger"] for part in parts],
        body.get("timestamp"),
        orjson.dumps(body, option=orjson.OPT_SORT_KEYS).decode(),
    )


def place_of(
    compiled: CompiledWindow, stored_at: datetime, namespace: Mapping[str, Any]
) -> WindowPlace | None:
    """Return the place of an event in the window (key, time and parts), or None if it fits no part. `stored_at` is its
    time unless the window reads one from the payload. Raises ExpressionError for a condition that fails, and Wrong if
    that time is missing."""
    trigger = namespace["event"]["trigger"]
    fits = [
        number
        for number, part in enumerate(compiled.parts)
        if part.trigger == trigger and part.when(namespace)
    ]
    if not fits:
        return None
    at = stored_at
    if compiled.timestamp is not None:
        value = value_at(namespace, compiled.timestamp)
        if value is MISSING:
            raise Wrong(
                f"{compiled.timestamp} is missing", "Publish events with the time that the window reads."
            )
        try:
            at = min(instant_of(value), stored_at)
        except Wrong as wrong:
            raise Wrong(f"{compiled.timestamp} {wrong}", wrong.hint) from None
    is_late = stored_at - at > compiled.window.lateness
    return WindowPlace(key_of(compiled.parts[fits[0]].by, namespace), at, fits, is_late)


def _always(namespace: Mapping[str, Any]) -> bool:
    return True
