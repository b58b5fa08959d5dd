"""Matches events against the rules of their triggers, and enforces what matches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from penstock.errors import InvalidInput
from penstock.ids import new_id
from penstock.language.event_rules import CompiledRule, Match, compile_rule, evaluate
from penstock.language.schemas import Schema
from penstock.store import catalog, events, namespaces
from penstock.store.database import Row, Transaction
from penstock_executor import event_waits


async def compiled(tx: Transaction, rows: Sequence[Row]) -> dict[int, CompiledRule]:
    """The rules of these rows, compiled once for each version."""
    missing = {row["definition_id"] for row in rows} - {key[1] for key in tx.cache if key[0] == "rule"}
    if missing:
        for id, body in (await catalog.bodies(tx, missing)).items():
            tx.cache["rule", id] = compile_rule(body)
    return {row["definition_id"]: tx.cache["rule", row["definition_id"]] for row in rows}


async def match(tx: Transaction, found: Sequence[Row]) -> None:
    """Enforce every rule that matches one of these events: one enforcement for each pair, whoever else tries. And end
    the waits of tasks that it fits."""
    await event_waits.complete_waits(tx, [event for event in found if event["awaited"]])
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

    names = {namespaces.name(event["tenant"], row["action"]): row["action"] for event, row, _ in hits}
    spaces = await namespaces.places(tx, names)
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
            spaces[namespaces.name(event["tenant"], row["action"])],
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
