"""The schema of schemas. The vocabularies of draft 2020-12 are one document, so that a schema is checked as any other
value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DIALECT = "https://json-schema.org/draft/2020-12/schema"
TYPES = ("object", "array", "string", "integer", "number", "boolean", "null")

_SCHEMA = {"$ref": "#"}
_SCHEMAS = {"type": "array", "minItems": 1, "items": _SCHEMA}
_NAMED = {"type": "object", "additionalProperties": _SCHEMA}
_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT, "uniqueItems": True}
_COUNT = {"type": "integer", "minimum": 0}
_NUMBER = {"type": "number"}
_FLAG = {"type": "boolean"}
_ANY = True

WORDS: Mapping[str, Any] = {
    "$schema": _TEXT,
    "$id": _TEXT,
    "$ref": _TEXT,
    "$anchor": _TEXT,
    "$dynamicRef": _TEXT,
    "$dynamicAnchor": _TEXT,
    "$vocabulary": {"type": "object", "additionalProperties": _FLAG},
    "$comment": _TEXT,
    "$defs": _NAMED,
    "definitions": _NAMED,
    "title": _TEXT,
    "description": _TEXT,
    "default": _ANY,
    "deprecated": _FLAG,
    "readOnly": _FLAG,
    "writeOnly": _FLAG,
    "examples": {"type": "array"},
    "type": {"anyOf": [{"enum": [*TYPES]}, {**_TEXTS, "items": {"enum": [*TYPES]}, "minItems": 1}]},
    "enum": {"type": "array"},
    "const": _ANY,
    "multipleOf": {"type": "number", "exclusiveMinimum": 0},
    "maximum": _NUMBER,
    "exclusiveMaximum": _NUMBER,
    "minimum": _NUMBER,
    "exclusiveMinimum": _NUMBER,
    "maxLength": _COUNT,
    "minLength": _COUNT,
    "pattern": _TEXT,
    "maxItems": _COUNT,
    "minItems": _COUNT,
    "uniqueItems": _FLAG,
    "maxContains": _COUNT,
    "minContains": _COUNT,
    "maxProperties": _COUNT,
    "minProperties": _COUNT,
    "required": _TEXTS,
    "dependentRequired": {"type": "object", "additionalProperties": _TEXTS},
    "allOf": _SCHEMAS,
    "anyOf": _SCHEMAS,
    "oneOf": _SCHEMAS,
    "not": _SCHEMA,
    "if": _SCHEMA,
    "then": _SCHEMA,
    "else": _SCHEMA,
    "dependentSchemas": _NAMED,
    "prefixItems": _SCHEMAS,
    "items": _SCHEMA,
    "contains": _SCHEMA,
    "properties": _NAMED,
    "patternProperties": _NAMED,
    "additionalProperties": _SCHEMA,
    "propertyNames": _SCHEMA,
    "unevaluatedItems": _SCHEMA,
    "unevaluatedProperties": _SCHEMA,
    "format": _TEXT,
    "contentEncoding": _TEXT,
    "contentMediaType": _TEXT,
    "contentSchema": _SCHEMA,
}
METASCHEMA: Mapping[str, Any] = {"type": ["object", "boolean"], "properties": WORDS}
