"""The conversion of the parameters of StackStorm's actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from penstock_import.consumed import Node
from penstock_import.literal_casts import only_type
from penstock_import.nested_fields import (
    allow_null,
    defaults_within,
    has_secrets,
    json_schema,
    let_be_null,
    required_fields,
)
from penstock_import.wanted_text import literal, member

Tell = Callable[[int, str, str], object]
"""A function that records a gap: (line, subject, work by hand)."""

_SCHEMA_WORDS = frozenset(
    {
        "type",
        "title",
        "description",
        "default",
        "enum",
        "format",
        "items",
        "properties",
        "anyOf",
        "oneOf",
        "allOf",
    }
    | {
        "additionalProperties",
        "patternProperties",
        "minimum",
        "maximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "pattern",
    }
    | {"not", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "const"}
)
_TYPES = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})


def parameter(
    name: str,
    source: Node,
    tell: Tell,
    of_runner: frozenset[str] = frozenset(),
    *,
    is_of_workflow: bool = False,
    is_payload: bool = False,
) -> dict[str, Any] | None:
    """Return the schema of one parameter; None for one of the runner that no caller may give, so that the runner's own default
    holds.

    In StackStorm one that is required and has a default may be left out, and one that is not required may be null. A
    parameter that is immutable always has its default. A workflow requires one with a default that is not mapped,
    so that nothing runs with another value. An action does not require it, as its function is to be written then. With
    `is_payload` the schema is that of a trigger: StackStorm adds no default to a payload."""
    schema: dict[str, Any] = {}
    for key, child in source.items():
        value = child.peek()
        if key in _SCHEMA_WORDS:
            child.drop()
            if value is not None:
                schema |= json_schema({key: value})
        elif key in ("required", "secret", "immutable") and isinstance(value, bool):
            child.drop()
        elif key == "position":
            child.drop()  # generated scripts read the position from the source
    required = source.get("required")
    is_required = required is not None and required.peek() is True
    secret = source.get("secret")
    if secret is not None and secret.peek() is True:
        schema["secret"] = True
    _settle_type(name, source, schema, tell)
    # The function renders a command line, which is a template, by itself.
    if name != "cmd" or name not in of_runner:
        is_mapped = _settle_default(name, source, schema, tell, is_of_workflow)
        is_required = (is_required and is_mapped) or (is_of_workflow and not is_mapped)
        if not is_mapped and not is_of_workflow and is_immutable(source):
            return None
    if is_required and "default" not in schema:
        schema["required"] = True
    elif not (is_required and is_payload) and not (is_of_workflow and is_filled_secret(schema)):
        if is_of_workflow:
            allow_null(schema)  # the default of a workflow's parameter is null
        let_be_null(schema)
    if needed := required_fields(source.peek()):
        list_required(schema, needed)
    for field in () if is_payload else defaults_within(source.peek()):
        tell(
            source.line_of("properties"),
            f"the default of {field}, a field of parameter {name}",
            "In Penstock an object without the field stays without it: set the field in the action.",
        )
    immutable = source.get("immutable")
    if immutable is not None and is_immutable(source):
        if "default" in schema:
            schema["const"] = schema["default"]
        elif name in of_runner:
            return None
        elif (default := source.get("default")) is None or default.peek() is None:
            tell(
                immutable.line,
                f"parameter {name} is immutable and has no default",
                "Remove the parameter, or give it a value.",
            )
    return schema


def is_immutable(source: Node) -> bool:
    """Return whether no caller may give a parameter."""
    immutable = source.get("immutable")
    return immutable is not None and immutable.peek() is True


def is_filled_secret(schema: dict[str, Any]) -> bool:
    """Return whether a parameter with a default is a secret, or has secret fields. A workflow refuses null for it, since
    a variable would show the value."""
    return has_secrets(schema) and schema.get("default") is not None


def list_required(schema: dict[str, Any], names: list[str]) -> None:
    """List the required fields of a parameter. In StackStorm, the key `required` of a parameter concerns the parameter
    itself."""
    if schema.get("required") is True:
        schema["allOf"] = [*schema.get("allOf", []), {"required": names}]
    else:
        schema["required"] = names


def _settle_type(name: str, source: Node, schema: dict[str, Any], tell: Tell) -> None:
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    if kind is not None and not all(isinstance(entry, str) and entry in _TYPES for entry in kinds):
        schema.pop("type")
        tell(source.line_of("type"), f"the type {kind} of parameter {name}", "Write a type of JSON Schema.")


def _settle_default(
    name: str, source: Node, schema: dict[str, Any], tell: Tell, is_of_workflow: bool
) -> bool:
    """Remove a default that cannot be mapped, record a gap for it, and return False. Return True if there is none."""
    default = schema.get("default")
    if default is None:
        return True
    if any(mark in str(default) for mark in ("{{", "{%", "<%")):
        tell(
            source.line_of("default"),
            f"the default {default} of parameter {name}",
            "The workflow requires the parameter for now. Pass it with each start: a value, or `{{ secrets.name }}`."
            if is_of_workflow
            else f"StackStorm computes it for a call without {name}: compute it in the function of the action.",
        )
    elif not fits(default, schema):
        tell(
            source.line_of("default"),
            f"the default {default!r} of parameter {name} does not fit its own schema",
            "Correct the default or the schema."
            + (" The workflow requires the parameter until then." if is_of_workflow else ""),
        )
    else:
        return True
    schema.pop("default")
    return False


def or_default(name: str, about: Mapping[str, Any]) -> str | None:
    """Return the template of the variable for a parameter; None for one that needs no variable, or a secret.

    A default stands for null, too. StackStorm converts a number to a float."""
    default = about.get("default")
    supplied = member("parameters", name)
    if has_secrets(about):
        return None
    if only_type(about.get("type")) == "number":
        number = f"{supplied} | float"
        otherwise = "none" if default is None else literal(float(default)).text
        is_never_null = "const" in about or about.get("required") is True
        return (
            f"{{{{ {number} }}}}"
            if is_never_null
            else f"{{{{ ({number}) if {supplied} is not none else {otherwise} }}}}"
        )
    if default is None or "const" in about:
        return None
    return f"{{{{ {supplied} if {supplied} is not none else {literal(default).text} }}}}"


def fits(value: Any, schema: dict[str, Any]) -> bool:
    """Return whether a value fits the type and the choices of a parameter."""
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    if kind is not None and not any(_is_of(value, str(entry)) for entry in kinds):
        return False
    return "enum" not in schema or value in schema["enum"]


def _is_of(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    types: dict[str, Any] = {
        "string": str,
        "integer": int,
        "number": int | float,
        "array": list,
        "object": dict,
        "null": type(None),
    }
    return kind in types and isinstance(value, types[kind])
