"""The starters of an execution, as its origin names them: a caller, a rule and its event, a schedule, another execution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock_api.pages.templating import short


@dataclass(frozen=True, slots=True)
class Starter:
    """A starter: the word before its name, such as `rule`, its name, and the path of its page, or None."""

    word: str
    name: str
    path: str | None = None


PAGES = {
    "rule": ("rule", "/rules"),
    "event": ("on event", "/events"),
    "schedule": ("schedule", "/schedules"),
    "started_by": ("execution", "/executions"),
    "callback_of": ("callback of", "/executions"),
    "rerun_of": ("re-run of", "/executions"),
}
"""The keys of an origin that name a page, in the order of display: the word before the name, and the pages."""
IDS = ("event", "started_by", "callback_of", "rerun_of")


def starters(origin: Mapping[str, Any] | None) -> Sequence[Starter]:
    """Return the starters of an execution with this origin."""
    values = origin or {}
    named = [
        Starter(word, short(values[key]) if key in IDS else str(values[key]), f"{pages}/{values[key]}")
        for key, (word, pages) in PAGES.items()
        if values.get(key) is not None
    ]
    return [*named, *([Starter("by" if named else "", str(values["by"]))] if values.get("by") else [])]


def other_values(origin: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the values of an origin that name no starter, such as the task from which a run is repeated."""
    return {key: value for key, value in (origin or {}).items() if key not in PAGES and key != "by"}
