"""Matches events against the rules of their triggers, and enforces what matches."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import orjson

from penstock.language.event_rules import CompiledRule, evaluate
from penstock.store import events, rule_matches
from penstock.store.database import Transaction
from penstock.store.events import CurrentRule, Event
from penstock.store.rule_matches import Hit
from penstock_executor import event_counts, event_spans, event_waits, rule_failures


async def match(tx: Transaction, found: Sequence[Event]) -> None:
    """Enforce every rule that matches one of these events: one enforcement for each pair, even if
    another replica handles the same event at once. And end
    the waits of tasks that it fits."""
    await event_waits.complete_waits(tx, [event for event in found if event.awaited])
    counts = event_counts.tally(tx)
    counts.seen.update(event.trigger for event in found)
    current = await events.rules(tx, sorted({event.trigger for event in found}))
    if not current:
        event_spans.send(found, (), datetime.now(UTC))
        return
    compiled = await rule_matches.compiled(tx, current)
    began = datetime.now(UTC)
    hits = _hits(found, current, compiled)
    counts.matched.update({event.id: event.trigger for event, _, _ in hits}.values())
    made: list[events.NewEnforcement] = []
    if hits:
        made = await rule_matches.enforcements(tx, hits, compiled)
        await events.enforce(tx, made)
        rule_failures.tally(tx).add([one.rule for one in made if one.error is not None])
    event_spans.send(found, made, began)


def _hits(
    found: Sequence[Event], current: Sequence[CurrentRule], compiled: dict[int, CompiledRule]
) -> list[Hit]:
    by_trigger: dict[str, list[CurrentRule]] = {}
    for rule in current:
        by_trigger.setdefault(rule.trigger, []).append(rule)
    hits: list[Hit] = []
    for event in found:
        payload = orjson.loads(event.payload)
        for rule in by_trigger.get(event.trigger, ()):
            verdict = evaluate(compiled[rule.definition_id], event, payload)
            if verdict.matched:
                hits.append((event, rule, verdict))
    return hits
