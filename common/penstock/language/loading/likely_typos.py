"""Warnings for fields that a rule reads and that the schema of its trigger does not name. A limit or a batch that is grouped by a
label gets one if no definition gives the label. An open schema accepts other fields too, and a start other labels. So these are
warnings, not errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from penstock.language.definitions.action import Action
from penstock.language.definitions.limit import EVERYTHING, Limit
from penstock.language.definitions.rule import Rule
from penstock.language.expressions import NamesUsed, condition, names_used
from penstock.language.loading.collection import Definitions
from penstock.language.loading.lint import Fault
from penstock.language.loading.skipped_alternatives import skipped_alternatives
from penstock.language.rules.parameter_checks import names_of
from penstock.language.terms.options import dotted
from penstock.language.terms.parameter_paths import LABELS, NEAR, is_label, meant_label
from penstock.language.terms.sources import Location, shown


def likely_typos(definitions: Definitions) -> Iterator[Fault]:
    """Yield a warning for each likely typo, at the condition, parameters or labels of a rule, or the paths of a limit or a batch.
    Also yield one for each task that is skipped although its condition has an alternative."""
    for rule in definitions.rules.values():
        trigger = definitions.triggers.get(rule.trigger or "")
        if trigger is not None:
            yield from _of_rule(rule, trigger.payload_schema)
    for limit in definitions.limits.values():
        yield from _of_limit(limit, definitions)
    for action in definitions.actions.values():
        yield from _of_batch(action, definitions)
    for workflow in definitions.workflows.values():
        yield from skipped_alternatives(workflow)


def _of_rule(rule: Rule, schema: Mapping[str, Any]) -> Iterator[Fault]:
    parts = [(("params",), names_used(rule.params)), (("labels",), names_used(rule.labels))]
    if rule.when is not None:
        parts.insert(0, (("when",), condition(rule.when).names))
    for at, used in parts:
        for prefix in (("payload",), ("event", "payload")):
            for path, meant in _undeclared(used, schema, prefix):
                place = rule.source.at(at)
                likely = f"Did you mean {meant!r}? " if meant else ""
                yield Fault(
                    f"rule {rule.ref}: trigger {rule.trigger} names no `{dotted(path)}`",
                    shown(place.file),
                    place.line,
                    f"{likely}Events may still have this field, because the schema allows further fields. "
                    "For events without it, the rule fails.",
                    is_warning=True,
                )


def _undeclared(
    used: NamesUsed, schema: Mapping[str, Any], prefix: Location
) -> Iterator[tuple[Location, str | None]]:
    """Yield the names below `prefix` that an open schema lacks, each with the similar name that is probably meant. A schema
    without any names says nothing about them."""
    properties: Mapping[str, Any] = schema.get("properties") or {}
    is_open = bool(properties) and names_of(schema) is None
    for name in sorted(map(str, used.under(*prefix))):
        below = properties.get(name)
        if isinstance(below, Mapping):
            yield from _undeclared(used, below, (*prefix, name))
        elif below is None and is_open:
            near = get_close_matches(name, properties, n=1, cutoff=NEAR)
            yield (*prefix, name), near[0] if near else None


def _of_limit(limit: Limit, definitions: Definitions) -> Iterator[Fault]:
    scope = str(limit.scope)
    schemas: dict[str, Mapping[str, Any]] = {}
    keys: set[str] = set()
    for item in (*definitions.actions.values(), *definitions.workflows.values()):
        is_action = item.kind == "action"
        if scope == EVERYTHING or item.ref == scope or item.ref.startswith(f"{scope}."):
            schemas[item.ref] = (item.parameters_schema if is_action else item.parameters) or {}
            choices = item.choices if is_action else item
            keys |= {*choices.run_labels, *choices.searchable}
    for rule in definitions.rules.values():
        if rule.action in schemas:
            keys |= set(rule.labels)
    parameters = {name for schema in schemas.values() for name in schema.get("properties") or {}}
    is_checked = scope in schemas and names_of(schemas[scope]) is not None
    for field in ("by", "fair"):
        place = limit.source.at((field,))
        for path in getattr(limit, field):
            fault = hint = None
            if is_label(path):
                fault, hint = _of_label(path, keys, parameters, "are counted together")
            elif (label := meant_label(path)) and path.partition(".")[0] not in parameters and not is_checked:
                fault = f"no action has the parameter `{path}`"
                hint = f"Did you mean {label!r}? Without the parameter all are counted together."
            if fault:
                message = f"limit {limit.ref}: {field}: {fault}"
                yield Fault(message, shown(place.file), place.line, hint, is_warning=True)


def _of_batch(action: Action[..., Any], definitions: Definitions) -> Iterator[Fault]:
    batch = action.choices.batch
    if batch is None or not batch.by_labels:
        return
    keys = {*action.choices.run_labels, *action.choices.searchable}
    for rule in definitions.rules.values():
        if rule.action == action.ref:
            keys |= set(rule.labels)
    for workflow in definitions.workflows.values():  # its tasks have the labels of their workflow
        keys |= {*workflow.run_labels, *workflow.searchable}
    parameters = set((action.parameters_schema or {}).get("properties") or {})
    place = action.source.at(("batch",))
    for path in filter(is_label, batch.by):
        fault, hint = _of_label(path, keys, parameters, "share calls")
        if fault:
            message = f"action {action.ref}: batch: by: {fault}"
            yield Fault(message, shown(place.file), place.line, hint, is_warning=True)


def _of_label(
    path: str, keys: set[str], parameters: set[str], together: str
) -> tuple[str | None, str | None]:
    """Return the likely fault of a path of a label, and its hint. `together` is what executions without the label do."""
    key = path.removeprefix(LABELS)
    if key in keys:
        return None, None
    if near := get_close_matches(key, keys, n=1, cutoff=NEAR):
        return f"no definition gives the label {key!r}", (
            f"Did you mean {LABELS + near[0]!r}? A start may still give this label. All executions without it {together}."
        )
    if "labels" in parameters:
        return f"`{path}` is the label {key!r}, and no part of the parameter `labels`", (
            "Give the parameter another name to group by its parts, or start with this label."
        )
    return None, None
