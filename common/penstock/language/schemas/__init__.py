"""JSON Schema (draft 2020-12) for payloads, parameters and results. Values are checked, secrets are masked, and schemas
are made from Python types or from the short form of YAML packs."""

from __future__ import annotations

from penstock.bounds import DEPTH_CAP, PAYLOAD_CAP
from penstock.language.schemas.declared_schema import parameters_schema, payload_schema
from penstock.language.schemas.schema import Schema
from penstock.language.schemas.schema_checks import check_schema
from penstock.language.schemas.schema_differences import schema_differences
from penstock.language.schemas.schema_tree import normalise
from penstock.language.schemas.storable_json import check_value
from penstock.language.schemas.type_schema import Secret, schema_of_type
from penstock.language.schemas.wanted_text import wants_text

__all__ = [
    "DEPTH_CAP",
    "PAYLOAD_CAP",
    "Schema",
    "Secret",
    "check_schema",
    "check_value",
    "mask",
    "normalise",
    "parameters_schema",
    "payload_schema",
    "schema_differences",
    "schema_of_type",
    "wants_text",
]

mask = Schema.masked
"""Return a value with `***` in place of each part that the schema marks as secret: `mask(value, schema)`."""
