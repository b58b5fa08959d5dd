"""The evaluation of rules: whether a rule matches an event, and the parameters for its action. These pure functions
serve the executor and `penstock rules test`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

import orjson

from penstock.errors import ExpressionError
from penstock.language.expressions import SECRETS, compile_template, condition
from penstock.language.rules.window_parts import CompiledWindow, WindowPlace, compile_window, place_of
from penstock.language.terms.debounce import Debounce, read_debounce
from penstock.language.terms.options import Wrong
from penstock.language.terms.run_labels import rendered_labels


class Event(Protocol):
    """The fields of an event that rules see, except its payload."""

    @property
    def id(self) -> UUID: ...
    @property
    def trigger(self) -> str: ...
    @property
    def tenant(self) -> str: ...
    @property
    def created_at(self) -> datetime: ...


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """A compiled version of a rule."""

    tenant: str | None
    when: Callable[[Mapping[str, Any]], bool]
    params: Callable[[Mapping[str, Any]], Any]
    priority: int
    options: str | None
    debounce: Debounce | None = None
    labels: Callable[[Mapping[str, Any]], Any] | None = None
    window: CompiledWindow | None = None


@dataclass(frozen=True, slots=True)
class Match:
    """The outcome of matching a rule with an event: the parameters for its action, or the reason for having no
    parameters. `failed_condition`: the reason is the condition's. A rule with a window has no parameters for an event alone:
    `place` is the place of the event in the window."""

    matched: bool
    params: Any = None
    error: str | None = None
    failed_condition: bool = False
    labels: Mapping[str, str] | None = None
    place: WindowPlace | None = None


def compile_rule(body: Mapping[str, Any]) -> CompiledRule:
    when = body.get("when")
    options = {name: body[name] for name in STORED_OPTIONS if body.get(name)}
    return CompiledRule(
        tenant=body.get("tenant"),
        when=(lambda _: True) if when is None else condition(when),
        params=compile_template(body.get("params") or {}),
        priority=int(body.get("priority") or 0),
        options=orjson.dumps(options).decode() if options else None,
        debounce=read_debounce(body),
        labels=compile_template(body["labels"]) if body.get("labels") else None,
        window=compile_window(body["window"]) if body.get("window") else None,
    )


STORED_OPTIONS = ("expires", "budget", "when_spent", "max_depth", "max_descendants")
"""The options of a rule that are stored with each execution that it starts."""
EVENT = ("id", "trigger", "tenant", "payload", "created_at")
"""The names of an event's fields in expressions."""


def event_namespace(event: Event, payload: Any) -> dict[str, Any]:
    """Return an event as expressions see it, with the fields that `EVENT` names."""
    return {
        "id": str(event.id),
        "trigger": event.trigger,
        "tenant": event.tenant,
        "payload": payload,
        "created_at": event.created_at.isoformat(),
    }


def evaluate(rule: CompiledRule, event: Event, payload: Any) -> Match:
    """Evaluate the rule for the event, as a burst of its own if the rule has a debounce time. If a condition or template
    fails, return a match with the error, so that an operator sees it."""
    if rule.tenant is not None and rule.tenant != event.tenant:
        return Match(False)
    namespace = {"event": event_namespace(event, payload), "payload": payload}
    try:
        if rule.window is not None:
            place = place_of(rule.window, event.created_at, namespace)
            return Match(place is not None, place=place)
        if not rule.when(namespace):
            return Match(False)
    except ExpressionError as error:
        return Match(True, error=_error_text(error), failed_condition=True)
    except Wrong as wrong:
        return Match(True, error=f"InvalidInput: {wrong}. {wrong.hint}", failed_condition=True)
    return parameters(rule, event, payload)


@dataclass(frozen=True, slots=True)
class WindowMatch:
    """The events of a match of a window, oldest first, each with its payload and the part that it took."""

    events: Sequence[tuple[Event, Any, int]]

    def names(self, window: CompiledWindow) -> dict[str, Any]:
        """Return the names that templates have for these events."""
        spaces = [event_namespace(event, payload) for event, payload, _ in self.events]
        parts = {
            window.names[part]: space
            for space, (_, _, part) in zip(spaces, self.events, strict=True)
            if window.names[part]
        }
        return {"events": spaces, "parts": parts}


def parameters(
    rule: CompiledRule,
    event: Event,
    payload: Any,
    payloads: Sequence[Any] | None = None,
    match: WindowMatch | None = None,
) -> Match:
    """Return a match with the parameters of the rule for an event that meets its condition, or with their error.
    `payloads` are those of the event's burst, by default its own, for a rule that keeps all of them. `match` has the events of a
    rule with a window."""
    names: dict[str, Any] = {"event": event_namespace(event, payload), "payload": payload, "secrets": SECRETS}
    if rule.window is not None and match is not None:
        names |= match.names(rule.window)
    if rule.debounce is not None and rule.debounce.keep == "all":
        names["payloads"] = [payload] if payloads is None else list(payloads)
    place, labels = "label ", None
    try:
        # Labels are shown to readers, so their templates cannot read secrets.
        if rule.labels is not None:
            labels = rendered_labels(rule.labels({**names, "secrets": {}}))
        place = "parameter "
        return Match(True, rule.params(names), labels=labels)
    except ExpressionError as error:
        return Match(True, error=_error_text(error, place), labels=labels)
    except Wrong as wrong:
        return Match(True, error=f"InvalidInput: labels {wrong}")


def _error_text(error: ExpressionError, place: str = "") -> str:
    """Return the error as text, with a word for the kind of the `place` that its message names first."""
    prefix = place if error.message.startswith("`") else ""
    return f"{type(error).__name__}: {prefix}{error.message} {error.hint or ''}".rstrip()
