"""Events that fit the windows of rules: they join the rows of their keys, and a window that has ended becomes a match or drops an
event."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from penstock.language.rules.event_rules import CompiledRule
from penstock.language.rules.window_parts import WindowPlace
from penstock.language.terms import windows
from penstock.store.events.bursts import BurstEvent, BurstKey, ClosedBurst, Watch, WindowEvent
from penstock.store.events.events import CurrentRule, Event
from penstock_executor.rule_failures import Cached


def window_event(
    event: Event, rule: CurrentRule, place: WindowPlace, compiled: Mapping[int, CompiledRule]
) -> WindowEvent:
    """Return the row of an event that fits parts of a window."""
    of_rule = compiled[rule.definition_id].window
    assert of_rule is not None  # only a rule with a window gives places
    due_at = of_rule.window.due_at(windows.WindowEvent(place.at, place.fits))
    of = BurstKey(rule.ref, event.tenant, place.key)
    return WindowEvent(of, event.id, place.at, rule.definition_id, due_at, place.fits, place.is_late)


@dataclass(frozen=True, slots=True)
class DecidedWindows:
    """The matches of a key, and the events that were dropped, with the reasons. `due_at` is the instant at which its next window
    can end."""

    matches: Sequence[ClosedBurst]
    dropped: Sequence[tuple[BurstEvent, str]]
    due_at: datetime | None


def decided(
    of_key: Sequence[BurstEvent],
    watch: Watch | None,
    compiled: Mapping[int, CompiledRule],
    horizon: datetime,
    *,
    is_cut: bool,
) -> DecidedWindows:
    """Decide the windows of a key that have ended before the horizon. The current version of the rule decides, and
    drops events that a version with another window matched."""
    rule = compiled[watch.definition_id].window if watch is not None else None
    if watch is None or rule is None:
        return DecidedWindows([], [(event, "changed") for event in of_key], horizon if is_cut else None)
    is_watched = [
        event.at >= watch.watches_since and _identity(compiled[event.definition_id]) == rule.identity
        for event in of_key
    ]
    watched = [event for event, yes in zip(of_key, is_watched, strict=True) if yes]
    dropped = [(event, "changed") for event, yes in zip(of_key, is_watched, strict=True) if not yes]
    lateness = rule.window.lateness
    decisions = windows.decide(
        [windows.WindowEvent(event.at, event.fits or ()) for event in watched],
        rule.window,
        horizon - lateness,
        is_cut=is_cut,
    )
    matches = []
    for decision in decisions.results:
        events = [watched[place] for place, _ in decision.events]
        if decision.reason is not None:
            dropped.append((events[0], decision.reason))
            continue
        parts = [part for _, part in decision.events]
        matches.append(
            ClosedBurst(events[0].of, events, "last", events[-1].event_id, watch.definition_id, parts)
        )
    due_at = None if decisions.due_at is None else decisions.due_at + lateness
    if is_cut and due_at is None:
        due_at = horizon  # the list was cut, so the key is due again for the events that were not read
    return DecidedWindows(matches, dropped, due_at)


def _identity(rule: CompiledRule) -> str | None:
    return None if rule.window is None else rule.window.identity


@dataclass(slots=True)
class Tally:
    """The number of events that left the windows of rules since the replica started, by outcome."""

    total: Counter[str] = field(default_factory=Counter)

    def add(self, closed: Sequence[ClosedBurst], dropped: Sequence[tuple[BurstEvent, str]]) -> None:
        self.total.update(reason for _, reason in dropped)
        self.total["matched"] += sum(len(burst.events) for burst in closed if burst.parts is not None)


def tally(of: Cached) -> Tally:
    """Return the tally of the replica."""
    replica_tally: Tally = of.cache.setdefault("windows.outcomes", Tally())
    return replica_tally
