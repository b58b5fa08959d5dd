"""Which rules match an event, and with which parameters they start their actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from penstock import placement
from penstock.database import Row, Transaction
from penstock.errors import ExpressionError, InvalidInput
from penstock.expressions import compile_template, condition
from penstock.ids import new_id
from penstock.schemas import Schema
from penstock.store import catalog, events


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """A version of a rule, ready to be evaluated."""

    tenant: str | None
    when: Callable[[Mapping[str, Any]], bool]
    params: Callable[[Mapping[str, Any]], Any]
    priority: int
    options: str | None


@dataclass(frozen=True, slots=True)
class Match:
    """What a rule made of an event: the parameters for its action, or why there are none."""

    matched: bool
    params: Any = None
    error: str | None = None


def compile_rule(body: Mapping[str, Any]) -> CompiledRule:
    when = body.get("when")
    options = {name: body[name] for name in ("expires",) if body.get(name)}
    return CompiledRule(
        tenant=body.get("tenant"),
        when=(lambda _: True) if when in (None, "", True) else condition(when),
        params=compile_template(body.get("params") or {}),
        priority=int(body.get("priority") or 0),
        options=orjson.dumps(options).decode() if options else None,
    )


def evaluate(rule: CompiledRule, event: Row, payload: Any) -> Match:
    """The rule against the event. A condition or template that fails is a match with an error: somebody must see it."""
    if rule.tenant is not None and rule.tenant != event["tenant"]:
        return Match(False)
    namespace = {
        "event": {
            "id": str(event["id"]),
            "trigger": event["trigger"],
            "tenant": event["tenant"],
            "payload": payload,
            "created_at": event["created_at"].isoformat(),
        },
        "payload": payload,
    }
    try:
        if not rule.when(namespace):
            return Match(False)
        return Match(True, rule.params(namespace))
    except ExpressionError as error:
        return Match(True, error=f"{type(error).__name__}: {error.message}")


async def compiled(tx: Transaction, rows: Sequence[Row]) -> dict[int, CompiledRule]:
    """The rules of these rows, compiled once for each version."""
    missing = {row["definition_id"] for row in rows} - {id for kind, id in tx.cache if kind == "rule"}
    if missing:
        for id, body in (await catalog.bodies(tx, missing)).items():
            tx.cache["rule", id] = compile_rule(body)
    return {row["definition_id"]: tx.cache["rule", row["definition_id"]] for row in rows}


async def match(tx: Transaction, found: Sequence[Row]) -> None:
    """Enforce every rule that matches one of these events: one enforcement for each pair, whoever else tries."""
    rows = await events.rules(tx, sorted({event["trigger"] for event in found}))
    if not rows:
        return
    rules = await compiled(tx, rows)
    by_trigger: dict[str, list[Row]] = {}
    for row in rows:
        by_trigger.setdefault(row["trigger"], []).append(row)

    hits: list[tuple[Row, Row, Match]] = []
    for event in found:
        payload = orjson.loads(event["payload"])
        for row in by_trigger.get(event["trigger"], ()):
            verdict = evaluate(rules[row["definition_id"]], event, payload)
            if verdict.matched:
                hits.append((event, row, verdict))
    if not hits:
        return

    names = {placement.name(event["tenant"], row["action"]): row["action"] for event, row, _ in hits}
    spaces = await placement.places(tx, names)
    schemas = await catalog.parameter_schemas(tx, {row["action_definition_id"] for _, row, _ in hits})
    columns: list[list[Any]] = [[] for _ in range(10)]
    for event, row, verdict in hits:
        rule = rules[row["definition_id"]]
        params, error = _checked(schemas.get(row["action_definition_id"]), row, verdict)
        values = (
            new_id(),
            event["id"],
            row["ref"],
            row["definition_id"],
            spaces[placement.name(event["tenant"], row["action"])],
            row["action_definition_id"],
            rule.priority,
            params,
            rule.options,
            error,
        )
        for column, value in zip(columns, values, strict=True):
            column.append(value)
    await events.enforce(tx, columns)


def _checked(schema: Schema | None, row: Row, verdict: Match) -> tuple[str | None, str | None]:
    """The parameters as JSON, or the reason why they are not what the action takes."""
    if verdict.error is not None:
        return None, verdict.error
    if schema is None:
        return None, f"NotFound: action {row['action']} is not registered or is disabled"
    try:
        return schema.check(verdict.params).decode(), None
    except InvalidInput as error:
        return None, f"InvalidInput: {error.message}"
