"""The enforcements of rules that match events, with their parameters or with an error: for new events, closed bursts,
replays, and rules that had failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import orjson

from penstock.errors import InvalidInput
from penstock.language.rules.event_rules import CompiledRule, Match, compile_rule
from penstock.language.rules.secret_references import checked_parameters
from penstock.language.schemas import Schema
from penstock.language.terms.ids import new_id
from penstock.store.access.tenant_keys import encrypted_tenants
from penstock.store.admission import namespaces
from penstock.store.definitions import catalog
from penstock.store.events.events import CurrentRule, Event
from penstock.store.session.database import Transaction

Hit = tuple[Event, CurrentRule, Match]
"""An event, a rule that matches it, and the parameters that the rule computes."""


@dataclass(slots=True)
class NewEnforcement:
    """A rule that matched an event, and the execution `id` that it starts. `params` and `options` are JSON. With an
    `error`, the enforcement is stored as failed and nothing starts."""

    id: UUID
    event_id: UUID
    rule: str
    definition_id: int
    namespace_id: int
    action_definition_id: int | None
    priority: int
    params: str | None
    options: str | None
    error: str | None


async def compiled(tx: Transaction, current: Sequence[CurrentRule]) -> dict[int, CompiledRule]:
    """Return these rules by definition id. Each version is compiled once."""
    return await catalog.compiled(tx, "rule", {rule.definition_id for rule in current}, compile_rule)


async def enforcements(
    tx: Transaction, hits: Sequence[Hit], compiled: dict[int, CompiledRule]
) -> list[NewEnforcement]:
    """Return an enforcement for each hit, in order."""
    places = await namespaces.places(
        tx, {namespaces.of(event.tenant, rule.action) for event, rule, _ in hits}
    )
    schemas = await catalog.parameter_schemas(tx, {rule.action_definition_id for _, rule, _ in hits})
    encrypted = await encrypted_tenants(tx) if any(verdict.labels for _, _, verdict in hits) else ()
    new_enforcements = []
    for event, rule, verdict in hits:
        schema = None if rule.action_definition_id is None else schemas.get(rule.action_definition_id)
        params, error = _checked(schema, rule, verdict, tx.settings.payload_cap)
        if verdict.labels and event.tenant in encrypted:
            params, error = None, f"InvalidInput: {LABELS_OF_ENCRYPTED}"
        new_enforcements.append(
            NewEnforcement(
                id=new_id(),
                event_id=event.id,
                rule=rule.ref,
                definition_id=rule.definition_id,
                namespace_id=places[namespaces.of(event.tenant, rule.action)],
                action_definition_id=rule.action_definition_id,
                priority=compiled[rule.definition_id].priority,
                params=params,
                options=_options(compiled[rule.definition_id].options, verdict),
                error=error,
            )
        )
    return new_enforcements


ENFORCE = """
select enforce_rules($1::uuid[], $2::uuid[], $3::text[], $4::integer[], $5::integer[], $6::integer[],
    $7::smallint[], $8::text[], $9::text[], $10::text[]) as messages
"""


async def record(tx: Transaction, matches: Sequence[NewEnforcement]) -> None:
    """Record matches, once for each rule and event (I7), and start their executions."""
    await tx.stage(
        ENFORCE,
        [match.id for match in matches],
        [match.event_id for match in matches],
        [match.rule for match in matches],
        [match.definition_id for match in matches],
        [match.namespace_id for match in matches],
        [match.action_definition_id for match in matches],
        [match.priority for match in matches],
        [match.params for match in matches],
        [match.options for match in matches],
        [match.error for match in matches],
    )


async def enforce(
    tx: Transaction, hits: Sequence[Hit], compiled: dict[int, CompiledRule]
) -> list[NewEnforcement]:
    """Record an enforcement for each hit, and return them."""
    new_enforcements = await enforcements(tx, hits, compiled)
    await record(tx, new_enforcements)
    return new_enforcements


LABELS_OF_ENCRYPTED = (
    "labels are stored as plain text, and the values of this tenant are encrypted: remove the rule's labels"
)


def _options(options: str | None, verdict: Match) -> str | None:
    """Return the options of a rule, with the labels that it computes for this event."""
    if not verdict.labels:
        return options
    return orjson.dumps({**orjson.loads(options or "{}"), "labels": verdict.labels}).decode()


def _checked(
    schema: Schema | None, rule: CurrentRule, verdict: Match, cap: int
) -> tuple[str | None, str | None]:
    """Return the parameters as JSON, or the reason why the action does not accept them."""
    if verdict.error is not None:
        return None, verdict.error
    if schema is None:
        return None, f"NotFound: action {rule.action} is not registered or is retired"
    try:
        return checked_parameters(schema, verdict.params, cap).decode(), None
    except InvalidInput as error:
        return None, f"InvalidInput: {error.message}"
