"""The checks that parameters with templates fit their action, as far as it can be known before a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from penstock.errors import InvalidInput
from penstock.language.expressions import NamesUsed
from penstock.language.expressions.template_checks import is_template
from penstock.language.schemas import Schema
from penstock.language.terms.options import Problem, did_you_mean, dotted
from penstock.language.terms.sources import Location

Names = Mapping[str, Any]
"""The available names, each with the names below it, or with None if these are not known."""

ONLY_GIVEN = (
    "Only the worker knows secrets: write {{ secrets.NAME }} in the parameters of a rule or a schedule, or in the input "
    "of a task that runs an action or a workflow."
)


def misfits(
    params: Mapping[str, Any], ref: str, schema: Mapping[str, Any] | None, noun: str = "parameter"
) -> Iterator[Problem]:
    """Yield the faults of parameters for the action or workflow `ref`, or of fields for the trigger `ref`: unknown names,
    missing names, and literal values that its schema refuses."""
    if not schema or any(map(is_template, params)):
        return
    names = names_of(schema)
    properties = schema.get("properties") or {}
    for name in params if names is not None else ():
        if name not in properties:
            yield Problem((name,), f"`{ref}` has no {noun} `{name}`", did_you_mean(name, properties))
    for name in schema.get("required") or ():
        if name not in params:
            yield Problem((), f"`{ref}` needs the {noun} `{name}`", f"Give it: `{name}: ...`.")
    for name, value in params.items():
        if name in properties and not is_template(value):
            try:
                Schema({**properties[name], "$defs": schema.get("$defs", {})}).validate(value, what=name)
            except InvalidInput as error:
                yield Problem((name,), error.message, error.hint)


def names_of(schema: Mapping[str, Any] | None) -> Names | None:
    """Return the names that a value of this schema may have. None if it may have others too."""
    if not schema or schema.get("additionalProperties") is not False or schema.get("patternProperties"):
        return None
    properties: Mapping[str, Any] = schema.get("properties") or {}
    return {name: names_of(part) if isinstance(part, Mapping) else None for name, part in properties.items()}


def unknown_names(used: NamesUsed, available: Names, prefix: Location = ()) -> Iterator[Problem]:
    """Yield a problem for each name that expressions use and that is not available. Each is `at` the name instead of a
    place in a definition."""
    for name in sorted(map(str, used.under(*prefix))):
        if name not in available:
            where = f"in `{dotted(prefix)}`" if prefix else "here"
            message = f"there is no `{name}` {where}" if prefix else f"`{name}` is not defined here"
            hint = ONLY_GIVEN if name == "secrets" and not prefix else did_you_mean(name, available)
            yield Problem((*prefix, name), message, hint)
        elif available[name] is not None:
            yield from unknown_names(used, available[name], (*prefix, name))
