"""The conversion of JSON Schemas to Python types: objects become TypedDicts, an enum a Literal, and anything
inexpressible Any."""

from __future__ import annotations

import builtins
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from keyword import iskeyword
from typing import Any

from penstock.language.schemas.schema_tree import follow
from penstock.language.schemas.secrets import is_secret

ANY = ("Any",)
SIMPLE = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
IMPORTED = ("Any", "Final", "Literal", "NotRequired", "TypedDict", "ActionRef")
"""The names that the generated module imports."""
COMPOSING = ("$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties", "dependentSchemas")
"""The keywords that may add fields to `properties`, which a TypedDict of `properties` would refuse."""

Parts = tuple[str, ...]
"""A type, as the members of its union."""


def text_of(parts: Parts) -> str:
    """Return the type as Python text: `Literal["a", "b"] | None`."""
    if "Any" in parts:
        return "Any"
    literals = [part[len("Literal[") : -1] for part in parts if part.startswith("Literal[")]
    other_parts = [part for part in parts if not part.startswith("Literal[")]
    return " | ".join([*([f"Literal[{', '.join(literals)}]"] if literals else []), *other_parts])


def fits(value: Any, parts: Parts) -> bool:
    """Return whether a type checker accepts this value, as a literal, for the type."""
    kinds = {type(None): ("None",), bool: ("bool",), int: ("int", "float"), float: ("float",), str: ("str",)}
    if type(value) not in kinds:
        return False
    return bool({"Any", f"Literal[{literal(value)}]", *kinds[type(value)]} & set(parts))


def literal(value: str | float | bool | None) -> str:
    """Return the value as a Python literal."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def is_field(name: str) -> bool:
    """Return whether a field of a class in Python can have this name."""
    return name.isidentifier() and not iskeyword(name) and not name.startswith("__")


def hides_a_type(name: str) -> bool:
    """Return whether a field of this name would hide a type from the fields that are declared after it."""
    return hasattr(builtins, name) or name in IMPORTED


class Names:
    """The names in one module, each used once."""

    def __init__(self, reserved: Iterable[str]) -> None:
        self._taken = set(reserved)

    def take(self, base: str) -> str:
        """Return the name `base`, with a number appended if it is taken."""
        numbered = chain([base], (f"{base}{n}" for n in count(2)))
        name = next(name for name in numbered if name not in self._taken)
        self._taken.add(name)
        return name


class TypedDicts:
    """The TypedDicts of a module, added as they are needed."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self.blocks: list[str] = []

    def schema(self, root: Mapping[str, Any], prefix: str) -> SchemaTypes:
        """Return the types of one schema. The names of its TypedDicts begin with `prefix`."""
        return SchemaTypes(self, root, prefix)

    def reserve(self, base: str) -> str:
        return self._names.take(base)

    def add(self, name: str, fields: Sequence[tuple[str, str, bool]]) -> None:
        """Add a TypedDict. A field is its name, its type, and whether it is required."""
        typed_fields = [(field, kind if needed else f"NotRequired[{kind}]") for field, kind, needed in fields]
        if all(is_field(field) and not hides_a_type(field) for field, _ in typed_fields):
            lines = [f"class {name}(TypedDict):", *(f"    {field}: {kind}" for field, kind in typed_fields)]
        else:  # the functional form, for names that are not Python identifiers
            entries = (f"    {literal(field)}: {literal(kind)}," for field, kind in typed_fields)
            lines = [f"{name} = TypedDict({literal(name)}, {{", *entries, "})"]
        self.blocks.append("\n".join(lines))


class SchemaTypes:
    """The types of the parts of one schema."""

    def __init__(self, dicts: TypedDicts, root: Mapping[str, Any], prefix: str) -> None:
        self._dicts, self._root, self._prefix = dicts, root, prefix
        self._referred: dict[str, Parts] = {}

    def of(self, schema: Any, name: str = "") -> Parts:
        """Return the type of a schema's values. `name` is the name for its TypedDict."""
        if not isinstance(schema, Mapping):
            return ANY
        kinds = _kinds(schema)
        if is_secret(schema):  # readers of definitions may not see the possible values of a secret
            return tuple(SIMPLE.get(kind, "Any") for kind in kinds) or ("str",)
        if "$ref" in schema:
            return self._reference(schema["$ref"])
        if "const" in schema or "enum" in schema:
            return _union(_choice(value) for value in schema.get("enum", [schema.get("const")]))
        for word in ("anyOf", "oneOf"):
            branches = _union(self.of(branch, name) for branch in schema.get(word, ()))
            if branches and "Any" not in branches:
                return branches
        if "allOf" in schema and not kinds:
            every = {self.of(branch, name) for branch in schema["allOf"]} - {ANY}
            return every.pop() if len(every) == 1 else ANY
        return _union(self._of_kind(schema, kind, name) for kind in kinds) or ANY

    def _of_kind(self, schema: Mapping[str, Any], kind: str, name: str) -> Parts:
        if kind == "array":
            return (f"list[{text_of(self.of(schema.get('items'), name + 'Item'))}]",)
        return (self._object(schema, name),) if kind == "object" else (SIMPLE[kind],)

    def _reference(self, reference: str) -> Parts:
        """Return the type of a referenced schema. A schema of fields has one TypedDict, which may refer to itself. Other
        schemas that refer to themselves become `Any` there."""
        if reference not in self._referred:
            target, name = follow(self._root, reference), camel(reference.rpartition("/")[2]) or "Whole"
            self._referred[reference] = ANY
            if _has_fields(target):
                typed = self._dicts.reserve(self._prefix + name)
                self._referred[reference] = (typed,)
                self._add(typed, target, name)
            else:
                self._referred[reference] = self.of(target, name)
        return self._referred[reference]

    def _object(self, schema: Mapping[str, Any], name: str) -> str:
        if _has_fields(schema):
            typed = self._dicts.reserve(self._prefix + name)
            self._add(typed, schema, name)
            return typed
        composed = "properties" in schema or any(word in schema for word in COMPOSING)
        values = ANY if composed else self.of(schema.get("additionalProperties"), name + "Value")
        return f"dict[str, {text_of(values)}]"

    def _add(self, typed: str, schema: Mapping[str, Any], name: str) -> None:
        required = schema.get("required", ())
        fields = [
            (field, text_of(self.of(subschema, name + camel(field))), field in required)
            for field, subschema in sorted(schema["properties"].items())
        ]
        self._dicts.add(typed, fields)


def camel(text: str) -> str:
    """Return `line_items` as LineItems, without characters that a Python name cannot have."""
    words = "".join(c if c.isascii() and c.isalnum() else " " for c in text).split()
    return "".join(word[0].upper() + word[1:] for word in words)


def _kinds(schema: Mapping[str, Any]) -> list[str]:
    kinds = schema.get("type", [])
    return [kinds] if isinstance(kinds, str) else sorted(kinds, key=lambda kind: kind == "null")


def _choice(value: Any) -> Parts:
    if isinstance(value, float | list | dict):
        return (f"{type(value).__name__}",) if isinstance(value, float) else ANY
    return ("None",) if value is None else (f"Literal[{literal(value)}]",)


def _union(types: Iterator[Parts]) -> Parts:
    return tuple(dict.fromkeys(part for parts in types for part in parts))


def _has_fields(schema: Any) -> bool:
    """Return whether a TypedDict can describe this schema: an object of declared fields, to which a caller cannot add
    others."""
    if not isinstance(schema, Mapping) or _kinds(schema) != ["object"] or is_secret(schema):
        return False
    closed = schema.get("additionalProperties", False) is False
    return bool(schema.get("properties")) and closed and not any(word in schema for word in COMPOSING)
