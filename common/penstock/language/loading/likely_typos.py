"""Warnings for fields that a rule reads and that the schema of its trigger does not name. An open schema accepts other fields
too, so such a field may exist: it is a warning, not an error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from penstock.language.definitions.rule import Rule
from penstock.language.expressions import NamesUsed, condition, names_used
from penstock.language.loading.collection import Definitions
from penstock.language.loading.lint import Fault
from penstock.language.rules.parameter_checks import names_of
from penstock.language.terms.options import dotted
from penstock.language.terms.sources import Location, shown

NEAR = 0.8
"""The similarity of two names, from 0 to 1, above which one may be a typo: `customre` and `customer` have 0.88."""


def likely_typos(definitions: Definitions) -> Iterator[Fault]:
    """Yield a warning for each likely typo, at the rule's condition, parameters or labels."""
    for rule in definitions.rules.values():
        trigger = definitions.triggers.get(rule.trigger or "")
        if trigger is not None:
            yield from _of_rule(rule, trigger.payload_schema)


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
                    f"{likely}It may be there all the same: the trigger takes what it does not name, too. The rule fails for "
                    "events without it.",
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
