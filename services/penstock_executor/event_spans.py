"""The spans of events that were matched with rules, and of the rules that matched."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import orjson

from penstock import tracing
from penstock.store.events.events import Event
from penstock.store.events.rule_matches import NewEnforcement
from penstock.tracing import Span
from penstock.tracing.spans import EVENT, RULE, above, event_span, rule_span


def send(batch: Sequence[Event], matches: Sequence[NewEnforcement], began: datetime) -> None:
    """Send the spans of traced events. A retried batch sends them again, with the same ids."""
    if not tracing.is_on() or all(event.trace is None for event in batch):
        return
    now = datetime.now(UTC)
    for event in batch:
        trace = tracing.trace_of(orjson.loads(event.trace)) if event.trace is not None else None
        if trace is None:
            continue
        own = event_span(event.id)
        of_event = {"penstock.event.id": str(event.id), "penstock.tenant": event.tenant}
        attributes = {"penstock.trigger": event.trigger, **of_event}
        name = f"{EVENT} {event.trigger}"
        tracing.send(Span(name, "consumer", trace, own, above(own, trace), began, now, attributes))
        for match in (match for match in matches if match.event_id == event.id):
            id, name = rule_span(event.id, match.rule), f"{RULE} {match.rule}"
            attributes = {"penstock.rule": match.rule, **of_event}
            if match.error is None:
                attributes["penstock.execution.id"] = str(match.id)
            tracing.send(Span(name, "internal", trace, id, own, began, now, attributes, error=match.error))
