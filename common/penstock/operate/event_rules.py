"""Events and the rules of their triggers: which rules match, and why. Nothing is started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson

from penstock.errors import NotFound
from penstock.language.definitions.rule import Rule
from penstock.language.rules.event_rules import Match, compile_rule, evaluate
from penstock.language.rules.trial import play
from penstock.language.schemas import Schema
from penstock.language.terms.debounce import MAX_EVENTS
from penstock.language.terms.ids import new_id
from penstock.language.terms.outside_names import check_tenant
from penstock.language.terms.system_triggers import SYSTEM_TRIGGERS, hint, is_system
from penstock.language.terms.windows import DROPPED, PATTERNS, WindowEvent, decide
from penstock.operate.masking import Masking
from penstock.store.definitions import catalog
from penstock.store.events import bursts, event_list, events
from penstock.store.events.bursts import BurstKey, BurstOfEvent
from penstock.store.events.event_list import EventFilter, ListedEvent
from penstock.store.events.events import CurrentRule, Enforcement, Event
from penstock.store.executions import effects
from penstock.store.session import clock
from penstock.store.session.database import Session

WAITING = "waiting"
"""The verdict of a rule that matches an event, and waits for other events or for the end of a burst."""
KEPT_DAYS = 3650
"""The age up to which events are searched. An event in a dropped partition is not found."""


async def listed(
    session: Session, filters: EventFilter, *, before: UUID | None, limit: int
) -> list[ListedEvent]:
    """Return the newest events that match the filter, with the number of rules that matched each. Payloads are
    masked."""
    masking = await Masking.load(session)
    rows = await event_list.page(session, filters, before=before, limit=limit)
    return [replace(row, payload=masking.payload(row.trigger, row.payload)) for row in rows]


def outcome_of(row: ListedEvent) -> str:
    """Return what a listed event did: `1 rule matched`, `1 rule matched, 1 rule failed`, `ended the wait of 1 execution`. It is
    `–` if it started nothing and nothing waited for it. A wait can end with a failure, so that nothing continues."""
    parts = [
        f"{_rules(row.matched - row.failed)} matched" if row.matched > row.failed else "",
        f"{_rules(row.failed)} failed" if row.failed else "",
        f"ended the wait of {row.continued:,} execution{'' if row.continued == 1 else 's'}"
        if row.continued
        else "",
    ]
    return ", ".join(part for part in parts if part) or "–"


def _rules(number: int) -> str:
    return "1 rule" if number == 1 else f"{number:,} rules"


async def described(session: Session, id: UUID) -> dict[str, Any] | None:
    """Return an event with its payload masked, the execution that published it, and those that it continued; None if it
    does not exist."""
    rows = await events.read(session, [id], days=KEPT_DAYS)
    if not rows:
        return None
    payload = (await Masking.load(session)).payload(rows[0].trigger, orjson.loads(rows[0].payload))
    published_by = await effects.publisher_of(session, id)
    continued = [asdict(run) for run in await effects.continued(session, id)]
    key = await event_list.key_of(session, id, rows[0].created_at)
    return {
        **asdict(rows[0]),
        "key": key,
        "payload": payload,
        "published_by": published_by,
        "continued": continued,
    }


async def described_with_rules(session: Session, id: UUID) -> dict[str, Any]:
    """Return an event with its payload masked, and with the verdicts of `tried` as `rules`. Raises NotFound if no event
    has this id."""
    event = await described(session, id)
    if event is None:
        raise NotFound(f"no event {id}", hint="Events are deleted when their retention is over.")
    return {**event, "rules": await tried(session, id)}


async def tried(session: Session, id: UUID) -> list[dict[str, Any]]:
    """Return a verdict for each rule of the event's trigger: whether it matches, why, and the outcome of those that
    matched. Raises NotFound if no event has this id."""
    rows = await events.read(session, [id], days=KEPT_DAYS)
    if not rows:
        raise NotFound(f"no event {id}", hint="Events are deleted when their retention is over.")
    enforced = {enforcement.rule: enforcement for enforcement in await events.enforcements(session, id)}
    verdicts = await _verdicts(session, rows[0], orjson.loads(rows[0].payload), enforced)
    in_bursts = await bursts.of_event(session, id)
    rules = {rule.ref: rule for rule in await _with_windows(session, rows[0], in_bursts)}
    results = []
    for verdict in verdicts:
        burst = in_bursts.get(verdict["rule"])
        if burst is None:
            results.append(verdict)
        elif burst.dropped is not None:
            why = f"the event started nothing: {DROPPED[burst.dropped]}"
            results.append({**verdict, "verdict": "no match", "why": why})
        elif burst.closed_at is None and burst.fits is not None:
            why = await _open_window(session, burst, rules.get(burst.rule))
            results.append({**verdict, "verdict": WAITING, "why": why})
        else:
            results.append({**verdict, **_of_burst(burst, id)})
    return results


async def _with_windows(
    session: Session, event: Event, in_bursts: Mapping[str, BurstOfEvent]
) -> list[CurrentRule]:
    """Return the rules that have the event in a window, with their bodies."""
    if all(burst.fits is None for burst in in_bursts.values()):
        return []
    return await events.rules(session, [event.trigger], disabled=True, bodies=True)


async def _open_window(session: Session, burst: BurstOfEvent, rule: CurrentRule | None) -> str:
    """Return the state of the oldest open window of an event's key."""
    compiled = compile_rule(orjson.loads(rule.body or "{}")).window if rule is not None else None
    if compiled is None:
        return "the rule has changed since the event came, so the event will start nothing"
    key = BurstKey(burst.rule, burst.tenant, burst.key)
    waiting = (await bursts.open_events(session, [key], MAX_EVENTS + 1))[key]
    line = [WindowEvent(event.at, event.fits or ()) for event in waiting]
    progress = decide(line, compiled.window, datetime.min.replace(tzinfo=UTC)).progress
    if progress is None:
        return "the window of the event has just closed"
    ends_at = progress.ends_at + compiled.window.lateness
    return f"the rule {compiled.window.state(progress.filled, compiled.triggers, f'{ends_at:%Y-%m-%d %H:%M:%S} UTC')}"


def _several(number: int) -> str:
    """Return a number of events as text."""
    return "1 event" if number == 1 else f"{number:,} events"


def _matched(number: int) -> str:
    """Return the sentence about a match of the played events."""
    return (
        "the rule matches this event" if number == 1 else f"the rule matches these {number:,} events together"
    )


def _of_burst(burst: BurstOfEvent, event: UUID) -> dict[str, Any]:
    """Return the part of a verdict about an event in a burst, or in a match of a window."""
    if burst.closed_at is None:
        closing = (
            ""
            if burst.due_at is None
            else f". The burst closes at {burst.due_at:%Y-%m-%d %H:%M:%S} UTC if no further event comes"
        )
        why = f"the rule has collected {_several(burst.events)} in a burst{closing}"
        return {"verdict": WAITING, "why": why}
    noun = "burst" if burst.fits is None else "match"
    source = "this event" if burst.event_id == event else f"event {burst.event_id}"
    if burst.execution_id is None:
        result = f"The rule failed on the parameters of {source}"
    else:
        result = f"The rule started one execution for the whole {noun}, with the parameters of {source}"
    return {
        "why": f"the event is part of a {noun} of {_several(burst.events)}, which closed at "
        f"{burst.closed_at:%Y-%m-%d %H:%M:%S} UTC. {result}",
        "execution": burst.execution_id,
    }


async def tried_on(
    session: Session, trigger: str, payload: Any, *, tenant: str = "public", rule: str | None = None
) -> list[dict[str, Any]]:
    """Return the verdicts of the rules (or of `rule`) on an event that has not happened. Raises NotFound for an
    unknown trigger, InvalidInput for a payload that does not fit its schema."""
    check_tenant(tenant)
    return await _tried(session, trigger, await _schema(session, trigger), payload, tenant, rule)


async def _schema(session: Session, trigger: str) -> Schema:
    """Return the schema of a trigger's payload. Raises NotFound if the trigger does not exist."""
    if is_system(trigger):
        return Schema(_system_schema(trigger))
    rows = await catalog.current(session, ["trigger"], [trigger])
    if not rows:
        otherwise = "List the triggers with: penstock triggers"
        raise NotFound(
            f"there is no trigger {trigger!r}",
            hint=await catalog.hint(session, ["trigger"], trigger, otherwise),
        )
    return Schema(orjson.loads(rows[0].body).get("schema"))


def _system_schema(trigger: str) -> dict[str, Any]:
    """Return the schema of a system trigger's payload, without required fields: a trial names those that matter."""
    if trigger not in SYSTEM_TRIGGERS:
        raise NotFound(f"there is no trigger {trigger!r}", hint=hint())
    return {**SYSTEM_TRIGGERS[trigger].schema(), "required": []}


async def _tried(
    session: Session, trigger: str, schema: Schema, payload: Any, tenant: str, rule: str | None
) -> list[dict[str, Any]]:
    body = schema.check(payload, what="payload", cap=session.settings.payload_cap)
    at = await clock.now(session)
    event = Event(new_id(), trigger, tenant, body.decode(), "try", at, False)
    return await _verdicts(session, event, orjson.loads(body), {}, rule)


async def tried_on_stored(session: Session, rule: Rule, *, limit: int) -> list[dict[str, Any]]:
    """Return the verdicts of a rule, which need not be stored, on the newest stored events of its triggers. Nothing is stored or
    started."""
    masking, body = await Masking.load(session), rule.body()
    compiled = compile_rule(body)
    stored = [
        event
        for trigger in rule.triggers
        for event in await event_list.page(session, EventFilter(trigger=trigger), before=None, limit=limit)
    ]
    newest = sorted(stored, key=lambda event: event.created_at, reverse=True)[:limit]
    return [
        {
            "event": event.id,
            "tenant": event.tenant,
            "created_at": event.created_at,
            **_verdict(body, evaluate(compiled, event, event.payload), event, masking),
        }
        for event in newest
    ]


async def played(session: Session, ref: str, played_events: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the matches of the rule in a list of events that have not happened, and the events that it drops, with masked
    parameters. Raises NotFound for an unknown rule or trigger, InvalidInput for an event that does not fit its schema."""
    rows = await catalog.current(session, ["rule"], [ref])
    if not rows:
        raise NotFound(f"no rule {ref!r}", hint="List the rules with: penstock rules list")
    rule = Rule(**orjson.loads(rows[0].body))
    outcome = play(rule, [await _checked(session, event) for event in played_events])
    masking = await Masking.load(session)
    matches = [
        {
            "events": list(entry.events),
            "params": masking.parameters(rule.action, entry.match.params),
            "error": entry.match.error,
            "why": entry.match.error or _matched(len(entry.events)),
        }
        for entry in outcome.matches
    ]
    drops = [
        {"events": [place], "params": None, "error": None, "why": f"no match: {DROPPED[reason]}"}
        for place, reason in sorted(outcome.dropped.items())
    ]
    return matches + drops


def parts_of(window: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the parts of a stored window."""
    parts: Sequence[Mapping[str, Any]] = next(window[name] for name in PATTERNS if window.get(name))
    return parts


async def _checked(session: Session, event: Any) -> Any:
    """Return a played event with the defaults of its trigger's schema."""
    if not isinstance(event, dict) or not isinstance(event.get("trigger"), str):
        return event  # the trial reports the fault with its position
    schema = await _schema(session, event["trigger"])
    body = schema.check(event.get("payload", {}), what="payload", cap=session.settings.payload_cap)
    return {**event, "payload": orjson.loads(body)}


async def _verdicts(
    session: Session,
    event: Event,
    payload: Any,
    enforced: Mapping[str, Enforcement],
    only: str | None = None,
) -> list[dict[str, Any]]:
    verdicts = []
    masking = await Masking.load(session)
    for rule in await events.rules(session, [event.trigger], disabled=True, bodies=True):
        if only is not None and rule.ref != only:
            continue
        body = orjson.loads(rule.body or "{}")
        verdict = _verdict(body, evaluate(compile_rule(body), event, payload), event, masking)
        if verdict["verdict"] != "failed" and not rule.enabled:
            verdict = {"verdict": "disabled", "why": "the rule is disabled", "params": None}
        past = enforced.get(rule.ref)
        verdicts.append(
            {
                "rule": rule.ref,
                **verdict,
                "action": rule.action,
                "execution": past.execution_id if past and past.status == "executed" else None,
                "enforcement": past.status if past else None,
                "error": past.error if past else None,
            }
        )
    return verdicts


def _verdict(
    body: Mapping[str, Any], match: Match, event: Event | ListedEvent, masking: Masking
) -> dict[str, Any]:
    """Return the verdict of a rule with this body about an event: `verdict`, `why` and the masked `params` for its
    action."""
    if match.error:
        return {"verdict": "failed", "why": match.error, "params": None}
    if match.place is not None:
        return {
            "verdict": "matched",
            "why": "the event is one of those that the rule waits for",
            "params": None,
        }
    if match.matched:
        why = "the condition is true" if body.get("when") else "the rule has no condition"
        return {
            "verdict": "matched",
            "why": why,
            "params": masking.parameters(body["action"], match.params),
        }
    if body.get("tenant") not in (None, event.tenant):
        why = f"the rule is for tenant {body['tenant']}, and the event is of tenant {event.tenant}"
    elif "window" in body:
        why = "the event fits no part of the window"
    else:
        why = f"the condition `{body.get('when')}` is false"
    return {"verdict": "no match", "why": why, "params": None}
