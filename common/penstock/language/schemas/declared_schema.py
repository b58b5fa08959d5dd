"""Schemas in the forms that users write: JSON Schema, the short form of YAML packs, or a Python type. The short form
lists the properties: `customer: {type: string, required: true, secret: true}`, or just `customer: string`. Besides
`required` and `secret`, it may have every keyword of JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.language.schemas.metaschema import TYPES, WORDS
from penstock.language.schemas.schema_checks import check_schema
from penstock.language.schemas.schema_tree import every, normalise
from penstock.language.schemas.type_schema import schema_of_type
from penstock.language.terms.options import Wrong, did_you_mean, dotted

_WORDS = frozenset(WORDS) | {"secret", "discriminator"}
_CLOSED = ("additionalProperties", "unevaluatedProperties")
_COMPOSED = ("$ref", "allOf", "anyOf", "oneOf", "if", "dependentSchemas")


def parameters_schema(declared: Any) -> dict[str, Any]:
    """Return the schema of an action's parameters: an object that accepts only declared parameters, unless it permits
    others. Raises Wrong if `declared` is not a valid schema, or not that of an object."""
    schema = {"type": "object", **_schema(declared)}
    if schema["type"] != "object":
        raise Wrong("describes something other than an object", "Parameters have names: use type: object.")
    if not any(word in schema for word in _CLOSED):
        # Branches and references declare properties too, and only `unevaluatedProperties` takes those into account.
        composed = any(word in schema for word in _COMPOSED)
        schema["unevaluatedProperties" if composed else "additionalProperties"] = False
    return _sound(schema)


def payload_schema(declared: Any) -> dict[str, Any]:
    """Return the schema of a trigger's payload, or of a result. The schema accepts undeclared properties too. Raises
    Wrong if `declared` is not a valid schema."""
    return _sound(_schema(declared))


def _sound(schema: dict[str, Any]) -> dict[str, Any]:
    check_schema(schema)
    normalised: dict[str, Any] = normalise(schema)
    return normalised


def _schema(declared: Any) -> dict[str, Any]:
    if declared is None:
        return {}
    if not isinstance(declared, Mapping):
        if isinstance(declared, str | bool | int | float | list):
            raise Wrong("is neither a JSON Schema nor a list of names", "Write name: {type: string}.")
        return schema_of_type(declared)
    if not all(isinstance(name, str) for name in declared):
        raise Wrong("has a name that is not text", "Put names such as 1 or true in quotes.")
    schema = dict(declared) if _is_json_schema(declared) else _long_form(declared)
    check_words(schema)
    return schema


def check_words(schema: Mapping[str, Any]) -> None:
    """Check that a schema uses only words of JSON Schema. Raises Wrong for the first other word, unless it begins with
    `x-`."""
    for place, part in every(schema):
        for word in part:
            if word not in _WORDS and not word.startswith("x-"):
                at = f" at {dotted(place)}" if place else ""
                hint = f"{did_you_mean(word, _WORDS)} A word of your own begins with x-."
                raise Wrong(f"has a keyword that JSON Schema does not know{at}: {word!r}", hint)


def _is_json_schema(declared: Mapping[str, Any]) -> bool:
    """Return whether `declared` is a JSON Schema, not the short form. Parameters may be called `type` or `allOf`, but
    the value of such an entry is a mapping."""
    if isinstance(declared.get("type"), str):
        return True
    named = declared.get("properties")
    if isinstance(named, Mapping) and named and all(isinstance(entry, Mapping) for entry in named.values()):
        return True
    return any(name.startswith("$") for name in declared) or any(
        isinstance(declared.get(word), list)
        for word in ("allOf", "anyOf", "oneOf", "enum", "type", "required")
    )


def _long_form(names: Mapping[str, Any]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, entry in names.items():
        if isinstance(entry, str):
            entry = {"type": entry}
        if not isinstance(entry, Mapping):
            raise Wrong(f"{name}: is neither a type nor a mapping", f"Write {name}: {{type: string}}.")
        entry = dict(entry)
        if isinstance(entry.get("required"), bool) and entry.pop("required"):
            required.append(name)
        kind = entry.get("type")
        if isinstance(kind, str) and kind not in TYPES:
            raise Wrong(f"{name}: unknown type {kind!r}", did_you_mean(kind, TYPES))
        properties[name] = entry
    return {"type": "object", "properties": properties, "required": required}
