"""The fields of objects in StackStorm's schemas: each says itself whether it is required, and may be null where it is not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_FLAGS = ("required", "immutable", "secret", "position")
"""Words with a boolean or a number that concern one field. Only a `secret` that is true is one of the schemas here."""
_UNCHECKED = frozenset({"format"})
"""Words by which StackStorm checks no value, and by which a schema here would."""
_BRANCHES = ("anyOf", "oneOf")
_DATA = ("default", "enum", "const", "examples")
"""Words with data as their values, and not parts of a schema."""


def json_schema(schema: Any) -> Any:
    """Return a part of a schema of StackStorm as JSON Schema, in which an object lists its required fields.

    A field with a default is not required, and one that is not required may be null. StackStorm adds defaults before
    it validates."""
    if isinstance(schema, list):
        return [json_schema(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    whole = {
        key: _mapped(key, part)
        for key, part in schema.items()
        if not (key in _FLAGS and isinstance(part, bool | int)) or (key == "secret" and part is True)
        if not (key in _UNCHECKED and isinstance(part, str))
    }
    fields, needed = schema.get("properties"), required_fields(schema)
    if not isinstance(fields, dict) or isinstance(schema.get("required"), list):
        return whole
    for name, about in whole["properties"].items():
        if isinstance(about, dict) and name not in needed:
            let_be_null(about)
    return whole | ({"required": needed} if needed else {})


def _mapped(key: str, part: Any) -> Any:
    if key in _DATA:
        return part
    if key in ("properties", "patternProperties") and isinstance(part, dict):
        return {name: json_schema(about) for name, about in part.items()}
    return json_schema(part)


def required_fields(schema: Any) -> list[str]:
    """Return the fields without which StackStorm refuses an object."""
    fields = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(fields, dict):
        return []
    return [
        name
        for name, about in fields.items()
        if isinstance(about, dict) and about.get("required") is True and "default" not in about
    ]


def defaults_within(schema: Any) -> Iterator[str]:
    """Yield the names of fields, at any depth, with a default that StackStorm adds to an object that lacks them."""
    if isinstance(schema, list):
        for part in schema:
            yield from defaults_within(part)
    if not isinstance(schema, dict):
        return
    for key, part in schema.items():
        if key != "properties" or not isinstance(part, dict):
            yield from () if key in _DATA else defaults_within(part)
            continue
        for name, about in part.items():
            if isinstance(about, dict) and about.get("default") is not None:
                yield str(name)
            yield from defaults_within(about)


def has_secrets(schema: Any) -> bool:
    """Return whether a schema, or any part of it, is marked as secret, so that StackStorm masks it."""
    if isinstance(schema, list):
        return any(map(has_secrets, schema))
    if not isinstance(schema, Mapping):
        return False
    return schema.get("secret") is True or any(
        has_secrets(part) for key, part in schema.items() if key not in _DATA
    )


def let_be_null(schema: dict[str, Any]) -> None:
    """Let a parameter or a field that is not required be null, as far as StackStorm does.

    With a default, StackStorm replaces null by the default before it validates. Without one, it adds null to the types or
    the branches of the schema, and takes a missing type as `string`. The choices of `enum` stay as they are."""
    if schema.get("default") is not None:
        allow_null(schema)
        return
    branches = next((schema[word] for word in _BRANCHES if isinstance(schema.get(word), list)), None)
    if branches is not None and not _is_nullable(branches):
        branches.append({"type": "null"})
    elif branches is None or isinstance(schema.get("type"), list):
        schema.setdefault("type", "string")
        _allow_null_type(schema)


def allow_null(schema: dict[str, Any]) -> None:
    """Let a parameter or a field be null, whatever it is."""
    _allow_null_type(schema)
    for word in _BRANCHES:
        if isinstance(schema.get(word), list) and not _is_nullable(schema[word]):
            schema[word] = [*schema[word], {"type": "null"}]
    if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
        schema["enum"] = [*schema["enum"], None]


def _allow_null_type(schema: dict[str, Any]) -> None:
    kind = schema.get("type")
    if isinstance(kind, str) and kind != "null":
        schema["type"] = [kind, "null"]
    elif isinstance(kind, list) and "null" not in kind:
        schema["type"] = [*kind, "null"]


def _is_nullable(branches: list[Any]) -> bool:
    """Return whether a branch is null by its type."""
    types = [branch.get("type") if isinstance(branch, dict) else branch for branch in branches]
    return any(kind == "null" or (isinstance(kind, list) and "null" in kind) for kind in types)
