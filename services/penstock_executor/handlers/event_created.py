"""The handler of event.created: it enforces the rules that match, and starts their executions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import orjson

from penstock.language.rules.event_rules import CompiledRule, evaluate
from penstock.messaging.consumer import Batch
from penstock.store.events import events, rule_matches
from penstock.store.events.events import CurrentRule, Event
from penstock.store.events.rule_matches import Hit, NewEnforcement
from penstock.store.session.database import Transaction
from penstock_executor import (
    burst_matches,
    event_counts,
    event_spans,
    event_waits,
    missing_events,
    rule_failures,
    system_events,
)

UNMATCHED = "no rule was matched with it"


async def handle(batch: Batch, tx: Transaction) -> None:
    new_events = await events.read(tx, batch.ids)
    # The message was parked for days, so its events are older than the usual range.
    if len(new_events) < len(batch.ids):
        new_events = await events.read(tx, batch.ids, days=3650)
        missing = set(batch.ids) - {event.id for event in new_events}
        await missing_events.keep(tx, await events.unmatched(tx, sorted(missing)), UNMATCHED)
    await system_events.complete(tx, new_events)
    await match(tx, new_events)
    await events.matched(tx, batch.ids)


async def match(tx: Transaction, batch: Sequence[Event]) -> None:
    """Enforce every rule that matches one of these events: one enforcement for each pair, even if another replica
    handles the same event at once. A rule with a debounce time is enforced later, once for a
    burst. Also end the waits of tasks for these events."""
    await event_waits.complete_waits(tx, [event for event in batch if event.awaited])
    counts = event_counts.tally(tx)
    counts.evaluated.update(event.trigger for event in batch)
    current = await events.rules(tx, sorted({event.trigger for event in batch}))
    if not current:
        event_spans.send(batch, (), datetime.now(UTC))
        return
    compiled = await rule_matches.compiled(tx, current)
    began = datetime.now(UTC)
    hits = _hits(batch, current, compiled)
    counts.matched.update({event.id: event.trigger for event, _, _ in hits}.values())
    enforcements: list[NewEnforcement] = []
    hits = await burst_matches.join(tx, hits, compiled)
    if hits:
        enforcements = await rule_matches.enforce(tx, hits, compiled)
        rule_failures.tally(tx).add(enforcements)
    event_spans.send(batch, enforcements, began)


def _hits(
    batch: Sequence[Event], current: Sequence[CurrentRule], compiled: dict[int, CompiledRule]
) -> list[Hit]:
    by_trigger: dict[str, list[CurrentRule]] = {}
    for rule in current:
        by_trigger.setdefault(rule.trigger, []).append(rule)
    hits: list[Hit] = []
    for event in batch:
        payload = orjson.loads(event.payload)
        for rule in by_trigger.get(event.trigger, ()):
            verdict = evaluate(compiled[rule.definition_id], event, payload)
            if verdict.matched:
                hits.append((event, rule, verdict))
    return hits
