"""The parameters of an action, with their JSON Schemas from those of an OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import DefinitionError, InvalidInput
from penstock.language.schemas import Schema
from penstock_import.openapi_document import Document, list_of, mapping_of
from penstock_import.report import Report

KEPT = frozenset(
    [
        "type",
        "enum",
        "const",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "pattern",
        "minItems",
        "maxItems",
        "uniqueItems",
        "minProperties",
        "maxProperties",
        "description",
    ]
)
"""The keywords of a schema that are taken as they are."""
MOST_DEFINITIONS = 60
"""The most schemas that those of one action refer to. An action that needs more takes an untyped body."""
MAX_DEPTH = 20
"""The most alternatives and parts inside of one another that are searched for types and fields."""


@dataclass(slots=True)
class Fields:
    """The fields of an object: their schemas by name, and the required names. `is_open` tells that others may be sent."""

    schemas: dict[str, Any] = field(default_factory=dict)
    required: set[str] = field(default_factory=set)
    is_open: bool = False


def first_line(text: Any) -> str:
    """Return the first line of a text, cut to 200 characters."""
    return (str(text or "").strip().splitlines() or [""])[0][:200]


class Schemas:
    """The meaning of the schemas of a document for a value: its types, its fields, and the fields that only responses have."""

    def __init__(self, document: Document) -> None:
        self._document = document

    def kinds(self, schema: Any, depth: int = 0) -> set[str]:
        """Return the types of a schema, with those of its alternatives, without `null`. A missing type counts as `any`."""
        schema = self._document.resolved(schema)
        if not isinstance(schema, Mapping) or depth > MAX_DEPTH:
            return {"any"}
        types = schema.get("type")
        if types is not None:
            names = types if isinstance(types, list) else [types]
            return {str(name) for name in names if name != "null"}
        alternatives = [*(schema.get("anyOf") or ()), *(schema.get("oneOf") or ())]
        if alternatives:
            parts = [part for part in alternatives if self._document.resolved(part) != {"type": "null"}]
            return set().union(*(self.kinds(part, depth + 1) for part in parts))
        for part in schema.get("allOf") or ():
            if "any" not in (kinds := self.kinds(part, depth + 1)):
                return kinds
        values = schema["enum"] if isinstance(schema.get("enum"), list) else [schema.get("const")]
        if all(isinstance(value, str | bool | int | float) for value in values if value is not None) and any(
            values
        ):
            return {"string"}
        return {"object"} if isinstance(schema.get("properties"), Mapping) else {"any"}

    def items(self, schema: Any, depth: int = 0) -> Any:
        """Return the schema of the items of a list, also of one among alternatives; None if it has none."""
        schema = self._document.resolved(schema)
        if not isinstance(schema, Mapping) or depth > MAX_DEPTH:
            return None
        if "items" in schema:
            return schema["items"]
        parts = [part for key in ("anyOf", "oneOf", "allOf") for part in schema.get(key) or ()]
        inner = (self.items(part, depth + 1) for part in parts)
        return next((items for items in inner if items is not None), None)

    def fields(self, schema: Any, depth: int = 0) -> Fields:
        """Return the fields of an object. Those of `allOf` come together. Of `anyOf` and `oneOf`, a field is required if all
        alternatives require it. Raises InvalidInput for a schema of another type."""
        schema = mapping_of(self._document.resolved(schema), "a schema")
        kinds = self.kinds(schema)
        if depth > MAX_DEPTH or not kinds & {"object", "any"}:
            raise InvalidInput("its form is not an object", hint="Write its action by hand.")
        result = Fields(dict(mapping_of(schema.get("properties"), "properties")))
        result.required = set(list_of(schema.get("required"), "required"))
        result.is_open = bool(schema.get("additionalProperties"))
        for part in schema.get("allOf") or ():
            self._merge(result, self.fields(part, depth + 1), "allOf")
            result.required |= self.fields(part, depth + 1).required
        for key in ("anyOf", "oneOf"):
            alternatives = [self.fields(part, depth + 1) for part in schema.get(key) or ()]
            choice = Fields()
            for alternative in alternatives:
                self._merge(choice, alternative, "anyOf")
            self._merge(result, choice, "allOf")
            if alternatives:
                result.required |= set.intersection(*(alternative.required for alternative in alternatives))
        return result

    def _merge(self, into: Fields, other: Fields, key: str) -> None:
        for name, schema in other.schemas.items():
            earlier = into.schemas.get(name)
            into.schemas[name] = schema if earlier in (None, schema) else {key: [earlier, schema]}
        into.is_open = into.is_open or other.is_open

    def read_only(self, schema: Any, depth: int = 0) -> set[str]:
        """Return the names of the fields that only responses have, also those of the parts of `allOf`."""
        schema = self._document.resolved(schema)
        if not isinstance(schema, Mapping) or depth > MAX_DEPTH:
            return set()
        properties = schema.get("properties")
        names = {
            str(name)
            for name, part in (properties.items() if isinstance(properties, Mapping) else ())
            if self.is_read_only(part)
        }
        return names.union(*(self.read_only(part, depth + 1) for part in schema.get("allOf") or ()))

    def is_read_only(self, schema: Any) -> bool:
        """Return whether only responses have a value of this schema."""
        resolved = self._document.resolved(schema)
        parts = [schema, resolved, *((resolved.get("allOf") or ()) if isinstance(resolved, Mapping) else ())]
        return any(isinstance(part, Mapping) and part.get("readOnly") is True for part in parts)

    def required(self, schema: Any, depth: int = 0) -> set[str]:
        """Return the required names of a schema, also those of the parts of `allOf`."""
        schema = self._document.resolved(schema)
        if not isinstance(schema, Mapping) or depth > MAX_DEPTH:
            return set()
        own = {str(name) for name in list_of(schema.get("required"), "required")}
        return own.union(*(self.required(part, depth + 1) for part in schema.get("allOf") or ()))


class Types:
    """The parameters of one action, and the schemas to which they refer."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._schemas = Schemas(document)
        self._properties: dict[str, Any] = {}
        self._required: list[str] = []
        self._definitions: dict[str, Any] = {}
        self._names: dict[tuple[str, frozenset[str]], str] = {}

    def add(self, theirs: str, schema: Any, required: bool, described: Any) -> str:
        """Add a parameter, and return its name here."""
        ours, number = snake(theirs), 2
        while ours in self._properties:
            ours, number = f"{snake(theirs)}_{number}", number + 1
        mapped = self._mapped(schema)
        description = described.get("description") if isinstance(described, Mapping) else None
        if description and "description" not in mapped:
            mapped["description"] = first_line(description)
        self._properties[ours] = mapped
        if required:
            self._required.append(ours)
        return ours

    def schema(self, name: str, report: Report, file: str) -> dict[str, Any]:
        """Return the JSON Schema of the parameters. One that is refused here loses its types, with a gap."""
        whole: dict[str, Any] = {
            "type": "object",
            "properties": self._properties,
            "additionalProperties": False,
        }
        if self._required:
            whole["required"] = self._required
        if self._definitions:
            whole["$defs"] = self._definitions
        for attempt in (whole, _without(whole, "pattern")):
            if len(self._definitions) <= MOST_DEFINITIONS and _is_accepted(attempt):
                return attempt
        report.gap(
            file,
            1,
            f"{name}: the types of its parameters are too large or too unusual",
            "Its parameters are untyped.",
        )
        return {**whole, "properties": {ours: {} for ours in self._properties}} | {"$defs": {}}

    def _mapped(self, schema: Any, read_only: Set[str] = frozenset()) -> dict[str, Any]:
        """Return a schema of OpenAPI 3.0 or 3.1 as JSON Schema for requests. `read_only` has names that the schemas around
        this one leave to responses."""
        if not isinstance(schema, Mapping):
            return {} if schema is not False else {"not": {}}
        if isinstance(reference := schema.get("$ref"), str):
            return {"$ref": f"#/$defs/{self._definition(reference, read_only)}"}
        read_only = read_only | self._schemas.read_only(schema)
        mapped: dict[str, Any] = {key: schema[key] for key in schema if key in KEPT}
        for bound in ("Minimum", "Maximum"):
            if isinstance(exclusive := schema.get(f"exclusive{bound}"), bool):  # as in OpenAPI 3.0
                del mapped[f"exclusive{bound}"]
                if exclusive and bound.lower() in mapped:
                    mapped[f"exclusive{bound}"] = mapped.pop(bound.lower())
        if isinstance(schema.get("description"), str):
            mapped["description"] = first_line(schema["description"])
        for key in ("allOf", "anyOf", "oneOf"):
            if isinstance(schema.get(key), list) and schema[key]:
                parts = [self._mapped(part, read_only) for part in schema[key]]
                mapped["anyOf" if key == "oneOf" else key] = parts
        if isinstance(schema.get("properties"), Mapping):
            mapped["properties"] = {name: self._mapped(part) for name, part in schema["properties"].items()}
        if isinstance(schema.get("required"), list):
            required = [name for name in schema["required"] if name not in read_only]
            mapped |= {"required": required} if required else {}
        if "items" in schema:
            mapped["items"] = self._mapped(schema["items"])
        if isinstance(extra := schema.get("additionalProperties"), Mapping):
            mapped["additionalProperties"] = self._mapped(extra)
        if schema.get("nullable") and isinstance(mapped.get("type"), str):
            mapped["type"] = [mapped["type"], "null"]
            if "enum" in mapped and None not in mapped["enum"]:
                mapped["enum"] = [*mapped["enum"], None]
        return mapped

    def _definition(self, reference: str, read_only: Set[str]) -> str:
        """Return the name of the definition of a referenced schema. Two references with the same last word have two
        names, and so has one schema whose required names differ by what is around it."""
        target = self._document.at(reference)
        released = frozenset(read_only & self._schemas.required(target)) - self._schemas.read_only(target)
        if (reference, released) in self._names:
            return self._names[reference, released]
        last = re.sub(r"[^A-Za-z0-9_.-]", "_", reference.rpartition("/")[2]) or "root"
        name, number = last, 2
        while name in self._definitions:
            name, number = f"{last}_{number}", number + 1
        self._names[reference, released] = name
        self._definitions[name] = {}  # a schema may refer to itself
        if len(self._definitions) <= MOST_DEFINITIONS:
            self._definitions[name] = self._mapped(target, released)
        return name


def snake(text: str) -> str:
    """Return a text as a name: lower case, with `_` between its words."""
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", text)
    name = re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_")
    return name if name[:1].isalpha() else f"n_{name}"


def _is_accepted(schema: dict[str, Any]) -> bool:
    try:
        Schema(schema)
    except (DefinitionError, RecursionError):
        return False
    return True


def _without(value: Any, key: str) -> Any:
    """Return a schema without a keyword. A property of that name stays."""
    if isinstance(value, dict):
        return {
            name: {inner: _without(part, key) for inner, part in entry.items()}
            if name in ("properties", "$defs") and isinstance(entry, dict)
            else _without(entry, key)
            for name, entry in value.items()
            if name != key or not isinstance(entry, str)
        }
    return [_without(item, key) for item in value] if isinstance(value, list) else value
