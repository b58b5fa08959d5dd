"""Matches events against the rules of their triggers, and enforces what matches."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from penstock.errors import InvalidInput
from penstock.ids import new_id
from penstock.language.event_rules import CompiledRule, Match, compile_rule, evaluate
from penstock.language.schemas import Schema
from penstock.store import catalog, events, namespaces
from penstock.store.database import Transaction
from penstock.store.events import CurrentRule, Event, NewEnforcement
from penstock_executor import event_waits

Hit = tuple[Event, CurrentRule, Match]
"""An event, a rule that matches it, and the parameters that the rule gives."""


async def match(tx: Transaction, found: Sequence[Event]) -> None:
    """Enforce every rule that matches one of these events: one enforcement for each pair, even if
    another replica handles the same event at once. And end
    the waits of tasks that it fits."""
    await event_waits.complete_waits(tx, [event for event in found if event.awaited])
    current = await events.rules(tx, sorted({event.trigger for event in found}))
    if not current:
        return
    compiled = await _compiled(tx, current)
    hits = _hits(found, current, compiled)
    if hits:
        await events.enforce(tx, await _enforcements(tx, hits, compiled))


async def _compiled(tx: Transaction, current: Sequence[CurrentRule]) -> dict[int, CompiledRule]:
    """These rules by their definitions, compiled once for each version."""
    ids = {rule.definition_id for rule in current}
    missing = {id for id in ids if ("rule", id) not in tx.cache}
    if missing:
        for id, body in (await catalog.bodies(tx, missing)).items():
            tx.cache["rule", id] = compile_rule(body)
    return {id: tx.cache["rule", id] for id in ids}


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


async def _enforcements(
    tx: Transaction, hits: Sequence[Hit], compiled: dict[int, CompiledRule]
) -> list[NewEnforcement]:
    names = {namespaces.name(event.tenant, rule.action): rule.action for event, rule, _ in hits}
    places = await namespaces.places(tx, names)
    schemas = await catalog.parameter_schemas(tx, {rule.action_definition_id for _, rule, _ in hits})
    made = []
    for event, rule, verdict in hits:
        schema = None if rule.action_definition_id is None else schemas.get(rule.action_definition_id)
        params, error = _checked(schema, rule, verdict)
        made.append(
            NewEnforcement(
                id=new_id(),
                event_id=event.id,
                rule=rule.ref,
                definition_id=rule.definition_id,
                namespace_id=places[namespaces.name(event.tenant, rule.action)],
                action_definition_id=rule.action_definition_id,
                priority=compiled[rule.definition_id].priority,
                params=params,
                options=compiled[rule.definition_id].options,
                error=error,
            )
        )
    return made


def _checked(schema: Schema | None, rule: CurrentRule, verdict: Match) -> tuple[str | None, str | None]:
    """The parameters as JSON, or the reason why they are not what the action takes."""
    if verdict.error is not None:
        return None, verdict.error
    if schema is None:
        return None, f"NotFound: action {rule.action} is not registered or is disabled"
    try:
        return schema.check(verdict.params).decode(), None
    except InvalidInput as error:
        return None, f"InvalidInput: {error.message}"
