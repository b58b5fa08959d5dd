"""Matches of rules with a debounce time: they join bursts, and a closed burst enforces its rule once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import orjson

from penstock.language.rules.event_rules import CompiledRule, event_namespace, parameters
from penstock.language.terms.bursts import MAX_EVENTS, key_of, split
from penstock.store.events import bursts, events, rule_matches
from penstock.store.events.bursts import BurstEvent, BurstKey, ClosedBurst
from penstock.store.events.events import CurrentRule, Event
from penstock.store.events.rule_matches import Hit
from penstock.store.session.database import Transaction
from penstock_executor import rule_failures


async def join(tx: Transaction, hits: Sequence[Hit], compiled: dict[int, CompiledRule]) -> list[Hit]:
    """Let the matches of rules with a debounce time join their bursts, and return the others. A condition that failed
    joins none, since it is not known to match."""
    joining: list[BurstEvent] = []
    immediate: list[Hit] = []
    for event, rule, verdict in hits:
        debounce = compiled[rule.definition_id].debounce
        if debounce is None or verdict.failed_condition:
            immediate.append((event, rule, verdict))
            continue
        names = {"event": event_namespace(event, orjson.loads(event.payload))}
        key = key_of(debounce, {**names, "payload": names["event"]["payload"]})
        waits = debounce.closes_at(event.created_at, event.created_at) - event.created_at
        of = BurstKey(rule.ref, event.tenant, key)
        joining.append(BurstEvent(of, event.id, event.created_at, rule.definition_id, waits.total_seconds()))
    if joining:
        await bursts.join(tx, joining)
    return immediate


async def close_due(tx: Transaction, limit: int) -> bool:
    """Close bursts of at most `limit` keys, and start an execution for each. Return False if no key was taken."""
    horizon, keys = await bursts.take_due(tx, limit)
    if not keys:
        return False
    waiting = await bursts.open_events(tx, keys, MAX_EVENTS + 1)
    versions = await bursts.rules(
        tx, sorted({event.definition_id for of_key in waiting.values() for event in of_key})
    )
    compiled = await rule_matches.compiled(tx, list(versions.values()))
    closed: list[ClosedBurst] = []
    due: list[tuple[BurstKey, datetime | None]] = []
    for key, of_key in waiting.items():
        newly_closed, following = _closed(of_key, compiled, horizon)
        closed += newly_closed
        due.append((key, following))
    if closed:
        await _enforce(tx, closed, versions, compiled)
        await bursts.close(tx, closed)
    await bursts.settle(tx, due)
    return True


def _closed(
    of_key: Sequence[BurstEvent], compiled: dict[int, CompiledRule], horizon: datetime
) -> tuple[list[ClosedBurst], datetime | None]:
    """Return the bursts of a key that have closed before the horizon, and the instant at which the next one can close.
    The newest version of the rule decides."""
    if not of_key:
        return [], None
    debounce = compiled[of_key[-1].definition_id].debounce
    assert debounce is not None  # only a version with a debounce time adds events
    closed: list[ClosedBurst] = []
    for span in split([event.at for event in of_key], debounce):
        is_cut = span.stop == len(of_key) > MAX_EVENTS  # later events were not read, and may belong to it
        if span.closes_at >= horizon or is_cut:
            return closed, span.closes_at
        members = of_key[span.start : span.stop]
        source = members[0] if debounce.keep == "first" else members[-1]
        closed.append(ClosedBurst(source.of, members, debounce.keep, source.event_id))
    return closed, None


async def _enforce(
    tx: Transaction,
    closed: Sequence[ClosedBurst],
    versions: dict[int, CurrentRule],
    compiled: dict[int, CompiledRule],
) -> None:
    needed: set[UUID] = set()
    for burst in closed:
        needed |= {event.event_id for event in burst.events} if burst.keep == "all" else {burst.event_id}
    by_id: dict[UUID, Event] = {event.id: event for event in await events.read(tx, sorted(needed), days=3650)}
    hits: list[Hit] = []
    for burst in closed:
        definition = burst.events[-1].definition_id
        payloads = (
            [orjson.loads(by_id[event.event_id].payload) for event in burst.events if event.event_id in by_id]
            if burst.keep == "all"
            else None
        )
        event = by_id[burst.event_id]
        hits.append(
            (
                event,
                versions[definition],
                parameters(compiled[definition], event, orjson.loads(event.payload), payloads),
            )
        )
    enforcements = await rule_matches.enforcements(tx, hits, compiled)
    await events.enforce(tx, enforcements)
    rule_failures.tally(tx).add(
        [enforcement.rule for enforcement in enforcements if enforcement.error is not None]
    )
