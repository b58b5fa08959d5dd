"""Fields that a rule reads and its trigger does not name, though it names one that is nearly the same. A trigger takes more than
what it names, so they may be there: this is no fault, and worth a warning before the first event."""

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
"""How alike two names are, from 0 to 1, for one to be taken for the other: `customre` and `customer` are 0.88."""


def likely_typos(definitions: Definitions) -> Iterator[Fault]:
    """A warning for each, at the rule's condition or parameters."""
    for rule in definitions.rules.values():
        trigger = definitions.triggers.get(rule.trigger)
        if trigger is not None:
            yield from _of_rule(rule, trigger.payload_schema)


def _of_rule(rule: Rule, schema: Mapping[str, Any]) -> Iterator[Fault]:
    parts = [(("params",), names_used(rule.params))]
    if rule.when is not None:
        parts.insert(0, (("when",), condition(rule.when).names))
    for at, used in parts:
        for prefix in (("payload",), ("event", "payload")):
            for path, meant in _near(used, schema, prefix):
                place = rule.source.at(at)
                yield Fault(
                    f"rule {rule.ref}: trigger {rule.trigger} names no `{dotted(path)}`",
                    shown(place.file),
                    place.line,
                    f"Did you mean {meant!r}? It may be there all the same: the trigger takes what it does not name, too.",
                    is_warning=True,
                )


def _near(used: NamesUsed, schema: Mapping[str, Any], prefix: Location) -> Iterator[tuple[Location, str]]:
    """The names below `prefix` that an open schema lacks, and the one that each is probably meant to be."""
    properties: Mapping[str, Any] = schema.get("properties") or {}
    closed = names_of(schema) is not None
    for name in sorted(map(str, used.under(*prefix))):
        below = properties.get(name)
        if isinstance(below, Mapping):
            yield from _near(used, below, (*prefix, name))
        elif below is None and not closed and (near := get_close_matches(name, properties, n=1, cutoff=NEAR)):
            yield (*prefix, name), near[0]
