"""An example of a document, made from a JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MADE = {"string": "text", "integer": 1, "number": 1.0, "boolean": True, "array": [], "null": None}
DEEPEST = 10


def example(schema: Any, depth: int = 0) -> Any:
    """Return the schema's own example or default, or else a value of its type. The example may be invalid, since
    patterns, formats and references are left to the person that fills it in."""
    if not isinstance(schema, Mapping) or depth > DEEPEST:
        return {} if depth == 0 else None
    for name in ("const", "default"):
        if name in schema:
            return schema[name]
    for name in ("examples", "enum"):
        if isinstance(schema.get(name), list) and schema[name]:
            return schema[name][0]
    for name in ("anyOf", "oneOf", "allOf"):
        if isinstance(schema.get(name), list) and schema[name]:
            return example(schema[name][0], depth + 1)
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        return {name: example(subschema, depth + 1) for name, subschema in properties.items()}
    type_ = schema.get("type")
    if isinstance(type_, list):
        type_ = next(iter(type_), None)
    if type_ in ("integer", "number") and isinstance(schema.get("minimum"), int | float):
        return schema["minimum"]
    if type_ == "array" and "items" in schema:
        return [example(schema["items"], depth + 1)]
    return MADE.get(str(type_), {})
