"""The trial of rules and expressions on payloads without events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from penstock.errors import InvalidInput
from penstock.language.definitions.rule import Rule
from penstock.language.expressions import expression
from penstock.language.rules.event_rules import (
    CompiledRule,
    Match,
    WindowMatch,
    compile_rule,
    event_namespace,
    parameters,
)
from penstock.language.rules.event_rules import evaluate as evaluate_rule
from penstock.language.schemas.storable_json import check_value
from penstock.language.terms import windows
from penstock.language.terms.debounce import key_of, split
from penstock.language.terms.durations import seconds
from penstock.language.terms.options import Wrong
from penstock.run.stored_json import stored_value

MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)
"""The start of a simulation's clock."""

NIL = UUID(int=0)
MAX_PLAYED = 1000
"""The maximum number of events that a trial plays."""
END_OF_TIME = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class SimulatedEvent:
    """A simulated event, with the fields that rules see."""

    trigger: str
    tenant: str = "public"
    id: UUID = NIL
    created_at: datetime = MIDNIGHT


def try_rule(rule: Rule, payload: Any = None, *, tenant: str = "public") -> Match:
    """Match a rule with an event that has this payload. Return the match, with the parameters for its action, or with
    the error of its condition or templates. Raises InvalidInput for a rule with a window."""
    _check_rule(rule, "try_rule")
    if rule.trigger is None:
        raise InvalidInput(
            f"rule {rule.ref} is for several events", hint="Give it a list of events: play(rule, events)."
        )
    return evaluate_rule(compile_rule(rule.body()), SimulatedEvent(rule.trigger, tenant), _stored(payload))


def _check_rule(rule: object, function: str) -> None:
    """Raise InvalidInput if the object is not a rule."""
    if not isinstance(rule, Rule):
        raise InvalidInput(
            f"{function} takes a rule, and {rule!r} is not one",
            hint=f"Pass the rule of the module, such as {function}(shop.big_orders, ...). To try a ref with all that it "
            "starts, publish an event: simulation.publish(TRIGGER, payload).",
        )


def evaluate(text: str, /, **names: Any) -> Any:
    """Return the value of an expression (`payload.amount > 100`), or of a text with templates (`"order {{ payload.id
    }}"`). `names` has the values of the names that it may use. Raises ExpressionError if the expression is not valid or
    fails."""
    return expression(text if "{{" in text else f"{{{{ {text} }}}}")(names)


@dataclass(frozen=True, slots=True)
class PlayedMatch:
    """A match of played events: their positions in the list, and the parameters for the action, or an error."""

    events: Sequence[int]
    match: Match


@dataclass(frozen=True, slots=True)
class Played:
    """The outcome of a list of events. `dropped` has the positions of events that joined a window and no match, with the
    reasons."""

    matches: Sequence[PlayedMatch]
    dropped: Mapping[int, windows.Reason]


_Entry = tuple[SimulatedEvent, Any]
"""An event with its payload."""


def play(rule: Rule, events: Sequence[Mapping[str, Any]]) -> Played:
    """Match a rule with a list of events, until all of its bursts and windows have ended. Each event is a mapping with `trigger`,
    `payload` and `at`, and perhaps `tenant` and `key`. `at` is the time at which the event is stored: an instant, or a time after
    midnight such as "10m". Raises InvalidInput for an event that is not of this form."""
    _check_rule(rule, "play")
    compiled = compile_rule(rule.body())
    entries = _entries(rule, events)
    order = sorted(entries, key=lambda place: (entries[place][0].created_at, place))
    verdicts = {
        place: evaluate_rule(compiled, *entries[place])
        for place in order
        if entries[place][0].trigger in rule.triggers
    }
    hits = {place: verdict for place, verdict in verdicts.items() if verdict.matched}
    failed = [PlayedMatch([place], hit) for place, hit in hits.items() if hit.failed_condition]
    joining = {place: hit for place, hit in hits.items() if not hit.failed_condition}
    if compiled.window is not None:
        played = _play_window(compiled, entries, joining)
    elif compiled.debounce is not None:
        played = Played(_play_bursts(compiled, entries, joining), {})
    else:
        played = Played([PlayedMatch([place], hit) for place, hit in joining.items()], {})
    return Played(sorted([*failed, *played.matches], key=lambda match: match.events[-1]), played.dropped)


def _play_window(rule: CompiledRule, entries: Mapping[int, _Entry], hits: Mapping[int, Match]) -> Played:
    assert rule.window is not None
    dropped: dict[int, windows.Reason] = {}
    lines: dict[tuple[str, str], list[tuple[datetime, int, Sequence[int]]]] = {}
    for place, hit in hits.items():
        assert hit.place is not None  # a rule with a window gives each event a place
        if hit.place.is_late:
            dropped[place] = "late"
        else:
            line = lines.setdefault((entries[place][0].tenant, hit.place.key), [])
            line.append((hit.place.at, place, hit.place.fits))
    matches = []
    for line in lines.values():
        line.sort()
        events = [windows.WindowEvent(at, fits) for at, _, fits in line]
        for decision in windows.decide(events, rule.window.window, END_OF_TIME).results:
            places = [line[number][1] for number, _ in decision.events]
            if decision.reason is not None:
                dropped[places[0]] = decision.reason
                continue
            members = [(*entries[line[number][1]], part) for number, part in decision.events]
            event, payload, _ = members[-1]
            matches.append(PlayedMatch(places, parameters(rule, event, payload, match=WindowMatch(members))))
    return Played(matches, dropped)


def _play_bursts(
    rule: CompiledRule, entries: Mapping[int, _Entry], hits: Mapping[int, Match]
) -> list[PlayedMatch]:
    assert rule.debounce is not None
    lines: dict[tuple[str, str], list[int]] = {}
    for place, hit in hits.items():
        event, payload = entries[place]
        names = {"event": event_namespace(event, payload), "payload": payload}
        key = key_of(rule.debounce.by, names, hit.labels)
        lines.setdefault((event.tenant, key), []).append(place)
    matches = []
    for line in lines.values():
        for span in split([entries[place][0].created_at for place in line], rule.debounce):
            members = line[span.start : span.stop]
            event, payload = entries[members[0] if rule.debounce.keep == "first" else members[-1]]
            payloads = [entries[place][1] for place in members]
            matches.append(PlayedMatch(members, parameters(rule, event, payload, payloads)))
    return matches


def _entries(rule: Rule, events: Sequence[Mapping[str, Any]]) -> dict[int, _Entry]:
    """Return the events by their positions. An event with the key of an earlier one is left out, as a doubled event is."""
    if len(events) > MAX_PLAYED:
        raise InvalidInput(f"there are {len(events):,} events", hint=f"Play at most {MAX_PLAYED:,} at once.")
    entries: dict[int, _Entry] = {}
    keys: set[Any] = set()
    for place, event in enumerate(events):
        if not isinstance(event, Mapping) or not set(event) <= {"trigger", "payload", "at", "tenant", "key"}:
            raise InvalidInput(f"event {place} is not of the form of an event", hint=FORM)
        if not isinstance(event.get("trigger"), str) or not isinstance(event.get("tenant", ""), str):
            raise InvalidInput(f"event {place} has no trigger, or its tenant is not text", hint=FORM)
        tenant = event.get("tenant") or rule.tenant or "public"
        if event.get("key") is not None:
            key = (tenant, event["trigger"], event["key"])
            if key in keys:
                continue
            keys.add(key)
        instant = _instant(place, event.get("at"))
        entries[place] = (
            SimulatedEvent(event["trigger"], tenant, UUID(int=place), instant),
            _stored(event.get("payload", {})),
        )
    return entries


def _stored(payload: Any) -> Any:
    """Return a payload as rules get it from the database. Raises InvalidInput for one that cannot be stored."""
    return stored_value(check_value(payload, what="the payload"))


FORM = 'Write {"trigger": "shop.paid", "at": "10m", "payload": {"order": 7}}; tenant and key are optional.'


def _instant(place: int, at: object) -> datetime:
    try:
        if isinstance(at, str) and "T" in at:
            return windows.instant_of(at)
        return MIDNIGHT + timedelta(seconds=seconds(at))
    except Wrong as wrong:
        raise InvalidInput(f"`at` of event {place} {wrong}", hint=FORM) from None
