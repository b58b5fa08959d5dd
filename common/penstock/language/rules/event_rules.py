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
from penstock.language.terms.bursts import Debounce, read_debounce
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


@dataclass(frozen=True, slots=True)
class Match:
    """The outcome of matching a rule with an event: the parameters for its action, or the reason for having no
    parameters. `failed_condition`: the reason is the condition's."""

    matched: bool
    params: Any = None
    error: str | None = None
    failed_condition: bool = False
    labels: Mapping[str, str] | None = None


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
        if not rule.when(namespace):
            return Match(False)
    except ExpressionError as error:
        return Match(True, error=_error_text(error), failed_condition=True)
    return parameters(rule, event, payload)


def parameters(
    rule: CompiledRule, event: Event, payload: Any, payloads: Sequence[Any] | None = None
) -> Match:
    """Return a match with the parameters of the rule for an event that meets its condition, or with their error.
    `payloads` are those of the event's burst, by default its own, for a rule that keeps all of them."""
    names: dict[str, Any] = {"event": event_namespace(event, payload), "payload": payload, "secrets": SECRETS}
    if rule.debounce is not None and rule.debounce.keep == "all":
        names["payloads"] = [payload] if payloads is None else list(payloads)
    try:
        labels = None
        if rule.labels is not None:  # labels are shown, so their templates read no secrets
            labels = rendered_labels(rule.labels({**names, "secrets": {}}))
        return Match(True, rule.params(names), labels=labels)
    except ExpressionError as error:
        return Match(True, error=_error_text(error))
    except Wrong as wrong:
        return Match(True, error=f"InvalidInput: labels {wrong}")


def _error_text(error: ExpressionError) -> str:
    return f"{type(error).__name__}: {error.message} {error.hint or ''}".rstrip()
