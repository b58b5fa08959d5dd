"""Forms made from JSON Schemas, with a field for each property of an object, or else one field for the whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from penstock.language.schemas.secrets import is_secret

LONG = 200
"""The `maxLength` from which a text field has several lines."""

UNNAMED = "answer"
"""The name of the field of a document that is not an object, and has no title."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a form. `at` is its path in the document, as JSON. `kind` is text, long, secret, integer, number,
    boolean, choice, date, date-time or json. For a list it may be several (some of the choices) or words. For a text or
    another type it is mixed."""

    name: str
    at: str
    kind: str
    required: bool
    says: str
    choices: Sequence[tuple[str, str]] = ()
    """The choices: the value to send (JSON), and the text to show."""
    value: str = ""
    minimum: float | None = None
    maximum: float | None = None
    types: Sequence[str] = ()
    """The types of JSON Schema of a mixed value: what is written in JSON of another type is text."""
    suggestions: Sequence[str] = ()
    """Texts that the browser offers. Other texts are permitted."""
    label: str = ""
    """The label for people, if it is not the name."""
    has_default: bool = False
    """The schema has a default, which is among the choices: a choice cannot be left empty."""


def fields(schema: Any, *place: str, value: Any = None) -> list[Field]:
    """Return the fields of a form for a document of this schema. `place` is the path of the document in what is sent.
    Values in `value` replace the schema's defaults."""
    mapping = schema if isinstance(schema, Mapping) else {}
    properties = mapping.get("properties")
    if isinstance(properties, Mapping) and properties:
        required = mapping.get("required") or ()
        values = value if isinstance(value, Mapping) else {}
        form_fields = [
            _field(name, subschema, (*place, name), name in required, values.get(name))
            for name, subschema in properties.items()
        ]
        return sorted(form_fields, key=lambda field: not field.required)
    if mapping.get("type") == "object" or not mapping:
        begin = {} if value is None else value
        return [_field(place[-1] if place else "document", {"type": "object"}, place, False, begin)]
    return [_field(str(mapping.get("title") or UNNAMED), mapping, place, True, value)]


def decision(form_fields: Sequence[Field]) -> Field | None:
    """Return the field of a yes or no, if an answer needs nothing else. Otherwise, return None."""
    booleans = [field for field in form_fields if field.kind == "boolean"]
    needed = [field for field in form_fields if field.required]
    return booleans[0] if len(booleans) == 1 and not needed else None


def is_approval(field: Field) -> bool:
    """Return whether a yes to this field approves something: the whole answer is a yes or no, or its name says so."""
    return field.name == UNNAMED or field.name.lower().startswith("approv")


def _field(name: str, schema: Any, place: Sequence[str], required: bool, value: Any) -> Field:
    plain = _plain(schema)
    kind, choices = _kind(plain)
    begin = plain.get("default") if value is None else value
    return Field(
        name=name,
        at=orjson.dumps(list(place)).decode(),
        kind=kind,
        required=required and kind != "boolean",
        says=str(plain.get("description") or plain.get("title") or ""),
        choices=choices,
        value="" if kind == "secret" else _text(begin, kind),
        minimum=_limit(plain, "minimum"),
        maximum=_limit(plain, "maximum"),
        types=_types(plain) if kind == "mixed" else (),
        has_default=plain.get("default") is not None,
    )


def _plain(schema: Any) -> Mapping[str, Any]:
    """Return the schema of a nullable value without its null."""
    plain: Mapping[str, Any] = schema if isinstance(schema, Mapping) else {}
    parts = [part for part in plain.get("anyOf") or () if part != {"type": "null"}]
    if len(parts) == 1 and isinstance(parts[0], Mapping):
        return {**parts[0], **{name: value for name, value in plain.items() if name != "anyOf"}}
    if isinstance(plain.get("type"), list):
        types = [type_ for type_ in plain["type"] if type_ != "null"]
        return {**plain, "type": types[0] if len(types) == 1 else types}
    return plain


def _kind(schema: Mapping[str, Any]) -> tuple[str, Sequence[tuple[str, str]]]:
    """Return the kind of form field, and its choices. A value that is not simple has a field for JSON."""
    if isinstance(schema.get("enum"), list):
        return "choice", [(orjson.dumps(choice).decode(), str(choice)) for choice in schema["enum"]]
    type_ = schema.get("type")
    if type_ == "string" and is_secret(schema):
        return "secret", ()
    if type_ == "string" and schema.get("format") in ("date", "date-time"):
        return str(schema["format"]), ()
    if type_ == "string":
        return ("long" if (schema.get("maxLength") or 0) >= LONG else "text"), ()
    if type_ in ("integer", "number", "boolean"):
        return str(type_), ()
    return ("mixed" if "string" in _types(schema) else "json"), ()


def _types(schema: Mapping[str, Any]) -> list[str]:
    """Return the types of a value that may be of several, or none if one of them is not named."""
    if isinstance(schema.get("type"), list):
        return [str(type_) for type_ in schema["type"]]
    parts = [*(schema.get("anyOf") or ()), *(schema.get("oneOf") or ())]
    types = [part.get("type") if isinstance(part, Mapping) else None for part in parts]
    return [str(type_) for type_ in types] if all(isinstance(type_, str) for type_ in types) else []


def _text(value: Any, kind: str) -> str:
    """Return the text of a value in its form field."""
    if value is None:
        return ""
    if kind == "mixed" and isinstance(value, str) and _reads_as_json(value):
        return orjson.dumps(value).decode()
    if kind in ("json", "choice", "boolean") or not isinstance(value, str):
        return orjson.dumps(value, default=str).decode()
    return value


def _reads_as_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def _limit(schema: Mapping[str, Any], name: str) -> float | None:
    limit = schema.get(name)
    return limit if isinstance(limit, int | float) and not isinstance(limit, bool) else None
