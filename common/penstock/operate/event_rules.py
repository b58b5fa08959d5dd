"""Events and the rules of their triggers: which rules match, and why. Nothing is started."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any
from uuid import UUID

import orjson

from penstock.errors import NotFound
from penstock.language.definitions.rule import Rule
from penstock.language.rules.event_rules import Match, compile_rule, evaluate
from penstock.language.schemas import Schema
from penstock.language.terms.ids import new_id
from penstock.language.terms.outside_names import check_tenant
from penstock.language.terms.system_triggers import SYSTEM_TRIGGERS, hint, is_system
from penstock.operate.masking import Masking
from penstock.store.definitions import catalog
from penstock.store.events import bursts, event_list, events
from penstock.store.events.bursts import BurstOfEvent
from penstock.store.events.event_list import EventFilter, ListedEvent
from penstock.store.events.events import Enforcement, Event
from penstock.store.session import clock
from penstock.store.session.database import Session

KEPT_DAYS = 3650
"""The age up to which events are searched. An event in a dropped partition is not found."""


async def listed(
    session: Session, filters: EventFilter, *, before: UUID | None, limit: int
) -> list[dict[str, Any]]:
    """Return the newest events that match the filter, with the number of rules that matched each. Payloads are
    masked."""
    masking = await Masking.load(session)
    rows = await event_list.page(session, filters, before=before, limit=limit)
    return [{**asdict(r), "payload": masking.payload(r.trigger, orjson.loads(r.payload))} for r in rows]


async def described(session: Session, id: UUID) -> dict[str, Any] | None:
    """Return an event with its payload masked; None if it does not exist."""
    rows = await events.read(session, [id], days=KEPT_DAYS)
    if not rows:
        return None
    payload = (await Masking.load(session)).payload(rows[0].trigger, orjson.loads(rows[0].payload))
    return {**asdict(rows[0]), "payload": payload}


async def tried(session: Session, id: UUID) -> list[dict[str, Any]]:
    """Return a verdict for each rule of the event's trigger: whether it matches, why, and the outcome of those that
    matched. Raises NotFound."""
    rows = await events.read(session, [id], days=KEPT_DAYS)
    if not rows:
        raise NotFound(f"no event {id}", hint="It may be older than the events' retention.")
    enforced = {enforcement.rule: enforcement for enforcement in await events.enforcements(session, id)}
    verdicts = await _verdicts(session, rows[0], orjson.loads(rows[0].payload), enforced)
    in_bursts = await bursts.of_event(session, id)
    return [
        {**verdict, **_of_burst(in_bursts[verdict["rule"]], id)} if verdict["rule"] in in_bursts else verdict
        for verdict in verdicts
    ]


def _of_burst(burst: BurstOfEvent, event: UUID) -> dict[str, Any]:
    """Return what a verdict says of an event in a burst."""
    several = "1 event" if burst.events == 1 else f"{burst.events:,} events"
    if burst.closed_at is None:
        closing = (
            "" if burst.due_at is None else f", which closes at {burst.due_at:%Y-%m-%d %H:%M:%S} UTC or later"
        )
        return {"why": f"it waits in an open burst of {several}{closing}"}
    source = "this event" if burst.event_id == event else f"event {burst.event_id}"
    return {
        "why": f"it went into a burst of {several} that closed at {burst.closed_at:%Y-%m-%d %H:%M:%S} UTC; "
        f"the execution has the parameters of {source}",
        "execution": burst.execution_id,
    }


async def tried_on(
    session: Session, trigger: str, payload: Any, *, tenant: str = "public", rule: str | None = None
) -> list[dict[str, Any]]:
    """Return the verdicts of the rules (or of `rule`) on an event that has not happened. Raises NotFound for an
    unknown trigger, InvalidInput for a payload that does not fit its schema."""
    check_tenant(tenant)
    if is_system(trigger):
        return await _tried(session, trigger, Schema(_system_schema(trigger)), payload, tenant, rule)
    rows = await catalog.current(session, ["trigger"], [trigger])
    if not rows:
        otherwise = "`penstock triggers` lists them."
        raise NotFound(
            f"no trigger {trigger!r}", hint=await catalog.hint(session, ["trigger"], trigger, otherwise)
        )
    schema = Schema(orjson.loads(rows[0].body).get("schema"))
    return await _tried(session, trigger, schema, payload, tenant, rule)


def _system_schema(trigger: str) -> dict[str, Any]:
    """Return the schema of a system trigger's payload, without required fields: a trial names those that matter."""
    if trigger not in SYSTEM_TRIGGERS:
        raise NotFound(f"no trigger {trigger!r}", hint=hint())
    return {**SYSTEM_TRIGGERS[trigger].schema(), "required": []}


async def _tried(
    session: Session, trigger: str, schema: Schema, payload: Any, tenant: str, rule: str | None
) -> list[dict[str, Any]]:
    body = schema.check(payload, what="payload", cap=session.settings.payload_cap)
    at = await clock.now(session)
    event = Event(new_id(), trigger, tenant, body.decode(), "try", at, False)
    return await _verdicts(session, event, orjson.loads(body), {}, rule)


async def tried_on_stored(session: Session, rule: Rule, *, limit: int) -> list[dict[str, Any]]:
    """Return the verdicts of a rule, which need not be stored, on the newest stored events of its trigger. Nothing is stored or
    started."""
    masking, body = await Masking.load(session), rule.body()
    filters = EventFilter(trigger=rule.trigger)
    compiled = compile_rule(body)
    return [
        {
            "event": event.id,
            "tenant": event.tenant,
            "created_at": event.created_at,
            **_verdict(body, evaluate(compiled, event, orjson.loads(event.payload)), event, masking),
        }
        for event in await event_list.page(session, filters, before=None, limit=limit)
    ]


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
    """Return what a rule with this body makes of an event: `verdict`, `why` and the masked `params` for its action."""
    if match.error:
        return {"verdict": "failed", "why": match.error, "params": None}
    if match.matched:
        why = "its condition holds" if body.get("when") else "it has no condition"
        return {
            "verdict": "matched",
            "why": why,
            "params": masking.parameters(body["action"], match.params),
        }
    if body.get("tenant") not in (None, event.tenant):
        why = f"it is for events of tenant {body['tenant']}, and this is one of {event.tenant}"
    else:
        why = f"its condition does not hold: {body.get('when')}"
    return {"verdict": "no match", "why": why, "params": None}
