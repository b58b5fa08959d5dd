"""The checks that parameters with templates fit their action, as far as it can be known before a run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from penstock.errors import ExpressionError, InvalidInput
from penstock.language.expressions import NamesUsed, expression
from penstock.language.expressions.template_checks import is_template
from penstock.language.schemas import Schema
from penstock.language.terms.options import Problem, did_you_mean, dotted
from penstock.language.terms.sources import Location

_SINGLE_NAME = re.compile(r"\s*\{\{\s*([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)\s*\}\}\s*")

Names = Mapping[str, Any]
"""The available names, each with the names below it, or with None if these are not known."""

ONLY_GIVEN = (
    "Only the worker knows secrets: write {{ secrets.NAME }} in the parameters of a rule or a schedule, or in the input "
    "of a task that runs an action or a workflow."
)


def misfits(
    params: Mapping[str, Any],
    ref: str,
    schema: Mapping[str, Any] | None,
    *,
    noun: str = "parameter",
    schemas: Mapping[str, Mapping[str, Any] | None] = {},
) -> Iterator[Problem]:
    """Yield the faults of parameters for the action or workflow `ref`, or of fields for the trigger `ref`: unknown names,
    missing names, and values that its schema refuses. Such a value is a literal, or a template that hands on one value of
    another type, or that always makes another type. `schemas` are those of the names that templates read: `{"payload": ...}`."""
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
        elif name in properties and isinstance(value, str):
            yield from _other_type(name, value, properties[name], schemas)
            yield from _made_type(name, value, properties[name])


def _other_type(
    name: str, template: str, expected: Any, schemas: Mapping[str, Mapping[str, Any] | None]
) -> Iterator[Problem]:
    """Yield a problem for a template that is a single name, such as `{{ payload.n }}`. The parameter refuses the type of every
    value under this name."""
    single = _SINGLE_NAME.fullmatch(template)
    if single is None:
        return
    path = single[1]
    for prefix, schema in schemas.items():
        if not path.startswith(f"{prefix}."):
            continue
        sources, accepted = _types(_below(schema, path[len(prefix) + 1 :].split("."))), _types(expected)
        if sources and accepted and not any(_fits(source, accepted) for source in sources):
            text = "string" in accepted
            yield Problem(
                (name,),
                f"{name}: expected {' or '.join(sorted(accepted))}, and `{path}` is {' or '.join(sorted(sources))}",
                f"Write {{{{ {path} | string }}}}."
                if text
                else "Convert it, or change one of the two schemas.",
            )


def _made_type(name: str, template: str, expected: Any) -> Iterator[Problem]:
    """Yield a problem for a template that makes values of a type which the parameter refuses: `EUR {{ payload.n }}` is a
    text, whatever n is."""
    try:
        json_type = expression(template).json_type
    except ExpressionError:  # the check of its syntax reports it
        return
    accepted = _types(expected)
    if json_type is not None and accepted and json_type not in accepted:
        yield Problem(
            (name,),
            f"{name}: expected {' or '.join(sorted(accepted))}, and `{template}` is always {json_type}",
            "Write one expression, with nothing before or after its {{ }}, that has a value of this type.",
        )


def _below(schema: Any, path: Sequence[str]) -> Any:
    """Return the schema of the value at a path; None if it is not known."""
    for name in path:
        if not isinstance(schema, Mapping) or not isinstance(schema.get("properties"), Mapping):
            return None
        schema = schema["properties"].get(name)
    return schema


def _types(schema: Any) -> frozenset[str]:
    """Return the types that a schema names itself; none if it names none."""
    if not isinstance(schema, Mapping):
        return frozenset()
    type_ = schema.get("type")
    return frozenset([type_] if isinstance(type_, str) else type_ if isinstance(type_, list) else ())


def _fits(type_: str, accepted: frozenset[str]) -> bool:
    # A schema for numbers accepts every integer, and the value of a number may be whole.
    return type_ in accepted or ({type_} | accepted) >= {"integer", "number"}


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
