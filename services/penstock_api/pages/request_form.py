"""Forms for requests to the API, made from the models of their bodies, so that a page and the API have the same fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import BaseModel

from penstock_api.pages.schema_form import Field, fields
from penstock_api.pages.templating import shown_status
from penstock_api.requests.code_elements import with_code

MASKED = ("password", "secret")
"""The fields that a browser shows as dots."""
LABELS = {
    "completes": "Callback id",
    "fails": "The executions fail if",
    "header": "Header with the secret",
    "key_header": "Header with the call id",
    "signature": "Signature scheme",
    "tasks": "Include tasks",
    "url": "URL",
}
"""The labels of fields for people, where the name of the field in the API is too short for one."""


def request_fields(
    model: type[BaseModel],
    value: Mapping[str, Any] | None = None,
    choices: Mapping[str, Sequence[str]] | None = None,
) -> list[Field]:
    """Return the fields of a form for this model. `value` has the values with which the form begins, and `choices` those
    of lists for which the model has none."""
    schema = model.model_json_schema()
    for property_ in schema["properties"].values():
        property_.pop("title", None)  # pydantic's title only repeats the name of the field
    return [
        _shown(field, schema["properties"][field.name], value or {}, choices or {})
        for field in fields(schema, value=value)
    ]


def _shown(
    field: Field, schema: Mapping[str, Any], value: Mapping[str, Any], choices: Mapping[str, Sequence[str]]
) -> Field:
    """Return the field as a person fills it in: an empty field stands for null, and a bound of a text's length makes no
    field of several lines."""
    field = replace(
        field,
        kind="text" if field.kind == "long" else field.kind,
        label=LABELS.get(field.name) or field.name.replace("_", " ").capitalize(),
        says=with_code(field.says.replace("null:", "Empty:")),
    )
    if field.name in MASKED:
        return replace(field, kind="secret", value="")
    if schema.get("type") != "array":
        return field
    words = choices.get(field.name) or schema["items"].get("enum") or ()
    begin = ", ".join(value.get(field.name) or ())
    if words:
        return replace(
            field, kind="several", choices=[(word, shown_status(word)) for word in words], value=begin
        )
    return replace(field, kind="words", value=begin)
