"""Windows: the events of one rule and key that are within a time of each other, and match a pattern together.

A match depends on the times of the events alone. So the executor, which reads rows, and a trial, which reads a list, decide
with the same function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, get_args

from penstock.language.terms.debounce import MAX_EVENTS
from penstock.language.terms.options import Wrong

Pattern = Literal["sequence", "all", "any", "count", "absence"]
PATTERNS: tuple[Pattern, ...] = get_args(Pattern)
Reason = Literal["expired", "answered", "full", "late", "changed"]
"""The reason why an event left a window without a match."""

DROPPED: Mapping[Reason, str] = {
    "expired": "the rule needs further events within its window, but they did not come in time",
    "answered": "the event that was expected came in time, so there is nothing to report",
    "full": f"the window of the event had more than {MAX_EVENTS:,} events",
    "late": "the event came too late for the window, even with its `lateness`",
    "changed": "the rule was disabled, deleted or given another window",
}
"""The sentence that an operator reads for each reason."""


@dataclass(frozen=True, slots=True)
class Window:
    """The pattern of a rule. `needed` events complete it, and `parts` is the number of its parts."""

    pattern: Pattern
    parts: int
    needed: int
    within: timedelta
    lateness: timedelta = timedelta(0)

    def part_of(self, fits: Sequence[int], filled: Sequence[int]) -> int | None:
        """Return the part that an event takes, of those that it fits, if these parts are filled already."""
        if self.pattern == "sequence":
            return len(filled) if len(filled) in fits else None
        if self.pattern == "count":
            return 0
        if self.pattern == "absence":
            return 0 if 0 in fits and not filled else None
        return next((part for part in fits if part not in filled), None)

    def state(self, filled: Sequence[int], triggers: Sequence[str], until: str) -> str:
        """Return what a window with these parts still needs, for an operator, without the last period. `until` is the instant
        at which it closes."""
        if self.pattern == "absence":
            return f"starts its action if no event of {triggers[1]} comes before {until}"
        missing = self.needed - len(filled)
        if missing <= 0:
            return f"has all events that it needs, and starts its action at {until} at the latest"
        progress = f". So far, the rule has {len(filled):,} of the {self.needed:,} events that it needs"
        if self.pattern == "count":
            return f"waits for {missing:,} more {'event' if missing == 1 else 'events'} of {triggers[0]} until {until}{progress}"
        names = [triggers[part] for part in range(self.parts) if part not in filled]
        of = f"{missing} of " if len(names) > missing else ""
        noun = "an event" if len(names) == 1 else "events"
        return f"waits for {noun} of {of}{', '.join(names)} until {until}{progress}"

    def due_at(self, event: WindowEvent) -> datetime:
        """Return the instant at which a window can end because of this event: at once, where it can complete or end one."""
        last = self.parts - 1
        ends_at_once = self.pattern in ("all", "any", "count") or 0 not in event.fits
        if ends_at_once or (self.pattern == "sequence" and last in event.fits):
            return event.at + self.lateness
        return event.at + self.within + self.lateness


@dataclass(frozen=True, slots=True)
class WindowEvent:
    """An event of a key at `at`, with the parts that it fits, in their order."""

    at: datetime
    fits: Sequence[int]


@dataclass(frozen=True, slots=True)
class Decision:
    """The end of a window: the positions of the events of a match, each with the part that it took, or the dropped event
    with the reason."""

    events: Sequence[tuple[int, int]]
    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of the oldest window of a key: the parts that are filled, in the order of their events, and its end."""

    filled: Sequence[int]
    ends_at: datetime


@dataclass(frozen=True, slots=True)
class Decisions:
    """The results of the windows of a key that have ended. `due_at` is the instant at which the next window can end, and
    `progress` is its state. Both are None if no event remains."""

    results: Sequence[Decision]
    due_at: datetime | None
    progress: Progress | None


def decide(
    events: Sequence[WindowEvent], window: Window, horizon: datetime, *, is_cut: bool = False
) -> Decisions:
    """Decide the windows of the events of a key, which are sorted. Every event before the horizon is known, except those after
    the last event of a list that is cut."""
    remaining = list(range(len(events)))
    known_until = min(horizon, events[-1].at) if is_cut and events else horizon
    results: list[Decision] = []
    while remaining:
        look = _look(events, window, remaining)
        if look.decided_at is not None:
            if look.decided_at >= horizon:
                return Decisions(results, look.decided_at, look.progress)
            decision = look.decision
        elif look.progress.ends_at <= known_until:
            decision = look.decision_at_end
        else:
            following = look.progress.ends_at if look.progress.ends_at > horizon else events[remaining[0]].at
            return Decisions(results, following, look.progress)
        results.append(decision)
        used = {place for place, _ in decision.events}
        remaining = [place for place in remaining if place not in used]
    return Decisions(results, None, None)


@dataclass(frozen=True, slots=True)
class _Look:
    """The state of the window of the oldest event. `decided_at` is the time of the event that ends it, and `decision` the
    result, None where no event does. `decision_at_end` is the result if the window ends by its time."""

    progress: Progress
    decision_at_end: Decision
    decided_at: datetime | None = None
    decision: Decision = Decision(())


def _look(events: Sequence[WindowEvent], window: Window, remaining: Sequence[int]) -> _Look:
    first = remaining[0]
    ends_at = events[first].at + window.within
    filled: list[tuple[int, int]] = []
    for number, place in enumerate(remaining):
        event = events[place]
        if number and event.at >= ends_at:
            break
        if number == MAX_EVENTS:
            return _ended(event.at, Decision([(first, 0)], "full"), filled, ends_at)
        if number and window.pattern == "absence" and 1 in event.fits:
            return _ended(event.at, Decision([(first, 0)], "answered"), filled, ends_at)
        part = window.part_of(event.fits, [part for _, part in filled])
        if part is not None:
            filled.append((place, part))
        elif not number:
            return _ended(event.at, Decision([(first, 0)], "expired"), filled, ends_at)
        if len(filled) == window.needed and window.pattern != "absence":
            return _ended(event.at, Decision(filled), filled, ends_at)
    at_end = Decision(filled) if window.pattern == "absence" else Decision([(first, 0)], "expired")
    return _Look(Progress([part for _, part in filled], ends_at), at_end)


def _ended(at: datetime, decision: Decision, filled: Sequence[tuple[int, int]], ends_at: datetime) -> _Look:
    return _Look(Progress([part for _, part in filled], ends_at), decision, at, decision)


def instant_of(value: Any) -> datetime:
    """Return the time of an event from its payload: Unix seconds, or a text in ISO 8601 with a zone. Raises Wrong for
    any other value."""
    hint = "Write Unix seconds, or a text such as 2026-01-31T09:00:00Z."
    try:
        if isinstance(value, str):
            instant = datetime.fromisoformat(value)
            if instant.tzinfo is None:
                raise Wrong("has no time zone", hint)
            return instant.astimezone(UTC)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError) as error:
        if isinstance(error, Wrong):
            raise
        raise Wrong("is not an instant", hint) from None
    raise Wrong("is not an instant", hint)
