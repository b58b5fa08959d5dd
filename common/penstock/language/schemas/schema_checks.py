"""Whether a schema is one that can be kept: valid, closed (no reference leads out of it), and of bearable size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from penstock.errors import InvalidInput
from penstock.language.options import Wrong, dotted
from penstock.language.schemas import patterns
from penstock.language.schemas.schema_tree import every
from penstock.language.schemas.value_checks import check_value

SCHEMA_CAP = 128 * 1024
"""Bytes of JSON."""

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def check_schema(schema: Any) -> None:
    """Raises Wrong, naming the place, if `schema` is no JSON Schema of draft 2020-12 that stands alone."""
    if not isinstance(schema, Mapping):
        raise Wrong("is not a JSON Schema: it must be an object", 'Write for example {"type": "object"}.')
    try:
        check_value(schema, SCHEMA_CAP, what="the schema")
    except InvalidInput as error:
        raise Wrong(error.message, error.hint) from None
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        where = dotted(tuple(error.absolute_path))
        raise Wrong(
            f"is not a JSON Schema{f' at {where}' if where else ''}: {_said(error)}",
            "Types are object, array, string, integer, number, boolean and null."
            if where.endswith("type")
            else "See json-schema.org, draft 2020-12.",
        ) from None
    if (dialect := schema.get("$schema", _DIALECT)) != _DIALECT:
        raise Wrong(f"names the dialect {dialect!r}", f"Penstock reads {_DIALECT}; leave $schema out.")
    for place, part in every(schema):
        _check_part(schema, part, dotted(place) or "its top")
    words = {word for _, part in every(schema) for word in part}
    if {"patternProperties", "unevaluatedProperties"} <= words:
        raise Wrong(
            "has unevaluatedProperties and patternProperties",
            "Say additionalProperties: there, how long a name is held against the patterns is bounded.",
        )


def _said(error: SchemaError) -> str:
    text = str(error.message)
    return text if len(text) <= 200 else f"{text[:200]}..."


def _check_part(root: Mapping[str, Any], part: Mapping[str, Any], place: str) -> None:
    for word in ("$id", "$dynamicRef", "$dynamicAnchor", "$anchor", "$vocabulary"):
        if word in part:
            raise Wrong(f"uses {word} at {place}", "Refer to parts of the same schema: #/$defs/name.")
    reference = part.get("$ref")
    if reference is not None and follow(root, reference) is None:
        raise Wrong(
            f"refers to {reference!r} at {place}, which is not in it",
            "Penstock fetches nothing: copy the schema into $defs and refer to #/$defs/name.",
        )
    if reference is not None and _circles(root, part):
        raise Wrong(
            f"refers to itself without end at {place}", "Let the reference lead to a schema of its own."
        )
    named = part.get("patternProperties", {})
    for pattern in (*named, *([part["pattern"]] if "pattern" in part else ())):
        try:
            patterns.compiled(pattern)
        except ValueError as error:
            raise Wrong(f"has a pattern at {place} that is none: {error}", None) from None
    for word in ("secret", "writeOnly"):
        if not isinstance(part.get(word, False), bool):
            raise Wrong(f"says neither true nor false to {word} at {place}", None)


def follow(root: Mapping[str, Any], reference: Any) -> Any:
    """What a local reference (`#`, `#/$defs/order`) leads to; None where there is nothing."""
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        return None
    node: Any = root
    for step in reference.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(node, Mapping) and step in node:
            node = node[step]
        elif isinstance(node, list) and step.isdigit() and int(step) < len(node):
            node = node[int(step)]
        else:
            return None
    return node if isinstance(node, Mapping | bool) else None


def _circles(root: Mapping[str, Any], part: Mapping[str, Any]) -> bool:
    """Whether a chain of references alone leads back to where it was."""
    seen: set[bytes] = set()
    node: Any = part
    while isinstance(node, Mapping) and "$ref" in node:
        key = orjson.dumps(node["$ref"])
        if key in seen:
            return True
        seen.add(key)
        node = follow(root, node["$ref"])
    return False
