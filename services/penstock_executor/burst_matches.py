"""Matches of rules with a debounce time or a window: they join bursts and windows, and what closes enforces its rule once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

import orjson

from penstock.language.rules.event_rules import (
    CompiledRule,
    Match,
    WindowMatch,
    event_namespace,
    parameters,
)
from penstock.language.terms.debounce import MAX_EVENTS, key_of, split
from penstock.store.events import bursts, events, rule_matches
from penstock.store.events.bursts import BurstEvent, BurstKey, ClosedBurst, WindowEvent
from penstock.store.events.events import CurrentRule, Event
from penstock.store.events.rule_matches import Hit
from penstock.store.session.database import Transaction
from penstock_executor import missing_events, rule_failures, window_matches


async def join(tx: Transaction, hits: Sequence[Hit], compiled: dict[int, CompiledRule]) -> list[Hit]:
    """Let the matches of rules with a debounce time or a window join their bursts and windows, and return the others. A
    condition that failed joins none, since it is not known to match."""
    joining: list[BurstEvent] = []
    joining_windows: list[WindowEvent] = []
    immediate: list[Hit] = []
    for event, rule, verdict in hits:
        debounce = compiled[rule.definition_id].debounce
        if verdict.place is not None:
            joining_windows.append(window_matches.window_event(event, rule, verdict.place, compiled))
            continue
        if debounce is None or verdict.failed_condition:
            immediate.append((event, rule, verdict))
            continue
        names = {"event": event_namespace(event, orjson.loads(event.payload))}
        key = key_of(debounce.by, {**names, "payload": names["event"]["payload"]}, verdict.labels)
        waits = debounce.closes_at(event.created_at, event.created_at) - event.created_at
        of = BurstKey(rule.ref, event.tenant, key)
        joining.append(BurstEvent(of, event.id, event.created_at, rule.definition_id, waits.total_seconds()))
    if joining:
        await bursts.join(tx, joining)
    if joining_windows:
        await bursts.join_windows(tx, joining_windows)
    return immediate


async def close_due(tx: Transaction, limit: int) -> bool:
    """Close bursts and windows of at most `limit` keys, and start an execution for each burst and match. Return False if no key
    was taken."""
    horizon, keys = await bursts.take_due(tx, limit)
    if not keys:
        return False
    waiting = await bursts.open_events(tx, keys, MAX_EVENTS + 1)
    of_windows = {
        key: [event for event in of_key if event.fits is not None] for key, of_key in waiting.items()
    }
    watches = await bursts.watches(tx, sorted({key.rule for key, of_key in of_windows.items() if of_key}))
    definitions = {event.definition_id for of_key in waiting.values() for event in of_key}
    versions = await bursts.rules(
        tx, sorted(definitions | {watch.definition_id for watch in watches.values()})
    )
    compiled = await rule_matches.compiled(tx, list(versions.values()))
    closed: list[ClosedBurst] = []
    dropped: list[tuple[BurstEvent, str]] = []
    due: list[tuple[BurstKey, datetime | None]] = []
    for key, of_key in waiting.items():
        is_cut = len(of_key) > MAX_EVENTS
        newly_closed, following = _closed(
            [event for event in of_key if event.fits is None], compiled, horizon, is_cut
        )
        windows = window_matches.decided(
            of_windows[key], watches.get(key.rule), compiled, horizon, is_cut=is_cut
        )
        closed += [*newly_closed, *windows.matches]
        dropped += windows.dropped
        due.append((key, min((at for at in (following, windows.due_at) if at is not None), default=None)))
    if closed:
        by_id, missing = await _read_events(tx, closed)
        if missing:  # their bursts are decided again, without the missing events
            await missing_events.keep(
                tx, sorted({event.event_id for event in missing}), "its burst closes without it"
            )
            await bursts.forget(tx, missing)
            again = {event.of for event in missing}
            closed = [burst for burst in closed if burst.of not in again]
            dropped = [(event, reason) for event, reason in dropped if event.of not in again]
            due = [(key, horizon if key in again else at) for key, at in due]
    if closed:
        await _enforce(tx, closed, by_id, versions, compiled)
        await bursts.close(tx, closed)
    if dropped:
        await bursts.drop(tx, dropped)
    window_matches.tally(tx).add(closed, dropped)
    await bursts.settle(tx, due)
    return True


def _closed(
    of_key: Sequence[BurstEvent], compiled: dict[int, CompiledRule], horizon: datetime, is_cut: bool
) -> tuple[list[ClosedBurst], datetime | None]:
    """Return the bursts of a key that have closed before the horizon, and the instant at which the next one can close.
    The newest version of the rule decides. A cut list may lack the last events of its last burst."""
    if not of_key:
        return [], None
    debounce = compiled[of_key[-1].definition_id].debounce
    assert debounce is not None  # only a version with a debounce time adds events
    closed: list[ClosedBurst] = []
    for span in split([event.at for event in of_key], debounce):
        if span.closes_at >= horizon or (is_cut and span.stop == len(of_key)):
            return closed, span.closes_at
        members = of_key[span.start : span.stop]
        source = members[0] if debounce.keep == "first" else members[-1]
        closed.append(
            ClosedBurst(source.of, members, debounce.keep, source.event_id, members[-1].definition_id)
        )
    return closed, None


async def _read_events(
    tx: Transaction, closed: Sequence[ClosedBurst]
) -> tuple[dict[UUID, Event], list[BurstEvent]]:
    """Return the events that give the parameters of these bursts, by id, and those of them that are not stored any more."""
    needed: list[BurstEvent] = []
    for burst in closed:
        has_all = burst.keep == "all" or burst.parts is not None
        needed += [event for event in burst.events if has_all or event.event_id == burst.event_id]
    ids = sorted({event.event_id for event in needed})
    by_id = {event.id: event for event in await events.read(tx, ids, days=3650)}
    return by_id, [event for event in needed if event.event_id not in by_id]


async def _enforce(
    tx: Transaction,
    closed: Sequence[ClosedBurst],
    by_id: Mapping[UUID, Event],
    versions: dict[int, CurrentRule],
    compiled: dict[int, CompiledRule],
) -> None:
    hits: list[Hit] = [
        (
            by_id[burst.event_id],
            versions[burst.definition_id],
            _match(burst, by_id, compiled[burst.definition_id]),
        )
        for burst in closed
    ]
    rule_failures.tally(tx).add(await rule_matches.enforce(tx, hits, compiled))


def _match(burst: ClosedBurst, by_id: Mapping[UUID, Event], rule: CompiledRule) -> Match:
    """Return the parameters of a closed burst, or of a match of a window."""
    event = by_id[burst.event_id]
    payload = orjson.loads(event.payload)
    if burst.parts is not None:
        match = WindowMatch(
            [
                (by_id[member.event_id], orjson.loads(by_id[member.event_id].payload), part)
                for member, part in zip(burst.events, burst.parts, strict=True)
            ]
        )
        return parameters(rule, event, payload, match=match)
    if burst.keep == "all":
        members = [by_id[member.event_id] for member in burst.events]
        return parameters(rule, event, payload, [orjson.loads(member.payload) for member in members])
    return parameters(rule, event, payload)
