"""The keys of OpenAPI's objects that an import reads, or that describe without an effect on a request. Each other key is
a gap, unless it is an extension, `x-...`, which OpenAPI allows to ignore."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock_import.report import Report

UNKNOWN = "The import does not read this key. See what it changes in a request."
KNOWN: Mapping[str, frozenset[str]] = {
    "document": frozenset(
        [
            "openapi",
            "info",
            "servers",
            "paths",
            "components",
            "security",
            "tags",
            "externalDocs",
            "jsonSchemaDialect",
            "$self",
        ]
    ),
    "path": frozenset(
        [
            "$ref",
            "summary",
            "description",
            "servers",
            "parameters",
            "get",
            "head",
            "post",
            "put",
            "patch",
            "delete",
            "options",
            "trace",
        ]
    ),
    "operation": frozenset(
        [
            "operationId",
            "tags",
            "summary",
            "description",
            "externalDocs",
            "deprecated",
            "parameters",
            "requestBody",
            "responses",
            "security",
            "servers",
        ]
    ),
    "parameter": frozenset(
        [
            "name",
            "in",
            "description",
            "required",
            "deprecated",
            "allowEmptyValue",
            "style",
            "explode",
            "schema",
            "content",
            "example",
            "examples",
            "$ref",
        ]
    ),
    "request body": frozenset(
        [
            "description",
            "content",
            "required",
            "$ref",
        ]
    ),
    "media type": frozenset(
        [
            "schema",
            "example",
            "examples",
            "encoding",
            "$ref",
        ]
    ),
    "encoding": frozenset(
        [
            "contentType",
            "style",
            "explode",
        ]
    ),
    "security scheme": frozenset(
        [
            "type",
            "description",
            "name",
            "in",
            "scheme",
            "bearerFormat",
            "flows",
            "openIdConnectUrl",
            "oauth2MetadataUrl",
            "deprecated",
            "$ref",
        ]
    ),
}
BY_HAND: Mapping[tuple[str, str], str] = {
    ("document", "webhooks"): "Declare a webhook for each, and a rule for its event.",
    ("operation", "callbacks"): "Declare a webhook for each, and a rule for its event.",
    (
        "parameter",
        "allowReserved",
    ): "Penstock escapes the value. If the server decodes it, nothing is to be done.",
    (
        "encoding",
        "allowReserved",
    ): "Penstock escapes the value. If the server decodes it, nothing is to be done.",
    (
        "encoding",
        "headers",
    ): "Penstock sends this part without headers of its own. If the server needs them, write the action by hand.",
    ("path", "query"): "Write its action by hand, with another method.",
    ("path", "additionalOperations"): "Write their actions by hand, with another method.",
}


def name_unread(report: Report, file: str, kind: str, source: Mapping[str, Any], subject: str) -> None:
    """Add a gap for each key of an object that is not read. `kind` is one of KNOWN; `subject` names the object."""
    for key, value in source.items():
        key = str(key)
        if key in KNOWN[kind] or key.startswith("x-") or value in (None, False, [], {}):
            continue
        report.gap(file, 1, f"{subject}: {key} is not read", BY_HAND.get((kind, key), UNKNOWN))
