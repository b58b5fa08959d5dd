"""Bursts: the events of one rule and key that follow each other within the debounce time, and start one execution."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

import orjson

from penstock.language.terms.parameter_paths import LABELS, is_label

Keep = Literal["last", "first", "all"]
StartKeep = Literal["last", "first"]
MAX_EVENTS = 1000
"""The number of events at which a burst closes, whatever its times."""


@dataclass(frozen=True, slots=True)
class Debounce:
    """The debounce options of a rule. `quiet` is the time without an event after which a burst closes, and `at_most` its
    longest time. `by` are paths within `event` and `payload`, and labels (`labels.customer`)."""

    quiet: timedelta
    at_most: timedelta | None
    by: tuple[str, ...]
    keep: Keep

    def closes_at(self, first: datetime, last: datetime) -> datetime:
        """Return the instant at which a burst with this first and last event closes, if no other event joins it."""
        closes = last + self.quiet
        return closes if self.at_most is None else min(closes, first + self.at_most)


def read_debounce(body: Mapping[str, Any]) -> Debounce | None:
    """Return the debounce options of a rule's body, or None."""
    if body.get("debounce") is None:
        return None
    at_most = body.get("at_most")
    return Debounce(
        timedelta(seconds=body["debounce"]),
        None if at_most is None else timedelta(seconds=at_most),
        tuple(body.get("by") or ()),
        body.get("keep", "last"),
    )


def key_of(
    paths: Sequence[str], namespace: Mapping[str, Any], labels: Mapping[str, str] | None = None
) -> str:
    """Return the key of an event: a digest of its values at the paths. `labels` are those that its rule gives. A value or a
    label may be missing, and 7.0 gives the same key as 7."""
    sought = [
        (labels or {}).get(path.removeprefix(LABELS), MISSING)
        if is_label(path)
        else value_at(namespace, path)
        for path in paths
    ]
    values = [[] if value is MISSING else [_plain_number(value)] for value in sought]
    return hashlib.sha256(orjson.dumps(values, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]


def _plain_number(value: Any) -> Any:
    """Return a float that is a whole number as an int, and any other value as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


MISSING = object()


def value_at(namespace: Mapping[str, Any], path: str) -> Any:
    """Return the value at a path of an event, or MISSING."""
    value: Any = namespace
    for name in path.split("."):
        value = value.get(name, MISSING) if isinstance(value, dict) else MISSING
    return value


@dataclass(frozen=True, slots=True)
class Span:
    """A burst within a list of events: the positions `start` to `stop`, and the instant at which it closes. A full burst
    closes with its last event."""

    start: int
    stop: int
    closes_at: datetime


def split(instants: Sequence[datetime], debounce: Debounce) -> list[Span]:
    """Return the bursts of events at these instants, which are sorted. The last one may still be open."""
    spans: list[Span] = []
    start = 0
    for place in range(1, len(instants) + 1):
        closes_at = debounce.closes_at(instants[start], instants[place - 1])
        if place - start == MAX_EVENTS:
            closes_at = instants[place - 1]
        elif place < len(instants) and instants[place] < closes_at:
            continue
        spans.append(Span(start, place, closes_at))
        start = place
    return spans
