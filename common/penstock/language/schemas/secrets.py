"""Masking what a schema marks as `secret` (or, in the words of OpenAPI, `writeOnly`)."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from penstock.language.redaction import MASK
from penstock.language.schemas.patterns import may_fit
from penstock.language.schemas.schema_checks import follow
from penstock.language.schemas.schema_tree import every

_VALUES = ("default", "const")
_LISTS_OF_VALUES = ("enum", "examples")
_IN_PLACE = ("allOf", "anyOf", "oneOf")
_IN_PLACE_ONE = ("if", "then", "else")


def is_secret(schema: Any) -> bool:
    return isinstance(schema, Mapping) and (schema.get("secret") is True or schema.get("writeOnly") is True)


def has_secrets(schema: Mapping[str, Any]) -> bool:
    """Whether anything in the schema is marked: most have nothing, and then there is nothing to do."""
    return any(is_secret(part) for _, part in every(schema))


def masked(value: Any, root: Mapping[str, Any]) -> Any:
    """`value` with MASK in place of what `root` marks. A part is secret if any schema that may apply says so."""
    return _masked(value, [root], root)


def masked_schema(root: Mapping[str, Any]) -> dict[str, Any]:
    """The schema itself, without the defaults, examples and constants of what it marks."""
    copied: dict[str, Any] = copy.deepcopy(dict(root))
    for _, node in every(copied):
        for _, part in every(node) if is_secret(node) else [((), node)]:
            for word in _VALUES:
                if word in part:
                    cast(dict[str, Any], part)[word] = _masked(part[word], [node], root)
            for word in _LISTS_OF_VALUES:
                if isinstance(part.get(word), list):
                    cast(dict[str, Any], part)[word] = [_masked(one, [node], root) for one in part[word]]
    return copied


def secret_texts(value: Any, root: Mapping[str, Any]) -> Iterator[str]:
    """Every text and number in the parts of `value` that `root` marks, as text."""
    yield from _secret_texts(value, [root], root)


def is_secret_at(place: Sequence[str | int], root: Mapping[str, Any]) -> bool:
    """Whether the value at this place, or one that it is a part of, is marked."""
    schemas: list[Any] = [root]
    for step in place:
        parts = list(_applying(schemas, root))
        if any(map(is_secret, parts)):
            return True
        schemas = [one for part in parts for one in _of_step(part, step)]
    return any(map(is_secret, _applying(schemas, root)))


def _masked(value: Any, schemas: Sequence[Any], root: Mapping[str, Any]) -> Any:
    parts = list(_applying(schemas, root))
    if any(map(is_secret, parts)):
        return MASK
    if not parts:
        return value
    if isinstance(value, Mapping):
        return {k: _masked(v, [s for p in parts for s in _of_step(p, k)], root) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(v, [s for p in parts for s in _of_step(p, i)], root) for i, v in enumerate(value)]
    return value


def _secret_texts(value: Any, schemas: Sequence[Any], root: Mapping[str, Any]) -> Iterator[str]:
    parts = list(_applying(schemas, root))
    if any(map(is_secret, parts)):
        yield from _leaves(value)
    elif isinstance(value, Mapping):
        for k, v in value.items():
            yield from _secret_texts(v, [s for p in parts for s in _of_step(p, k)], root)
    elif isinstance(value, list | tuple):
        for i, v in enumerate(value):
            yield from _secret_texts(v, [s for p in parts for s in _of_step(p, i)], root)


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for one in value:
            yield from _leaves(one)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)


def _applying(schemas: Sequence[Any], root: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """These schemas and all that apply to the same value: what they refer to, and their branches."""
    pending, seen = list(schemas), set[int]()
    while pending:
        node = pending.pop()
        if not isinstance(node, Mapping) or id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        if "$ref" in node:
            pending.append(follow(root, node["$ref"]))
        for word in _IN_PLACE:
            pending.extend(node.get(word, ()))
        pending.extend(node[word] for word in _IN_PLACE_ONE if word in node)
        pending.extend(node.get("dependentSchemas", {}).values())


def _of_step(schema: Mapping[str, Any], step: str | int) -> Iterator[Any]:
    """The schemas for one property, or one item."""
    if isinstance(step, int):
        first: Sequence[Any] = schema.get("prefixItems", ())
        yield from first[step : step + 1]
        yield from (schema[word] for word in ("items", "contains", "unevaluatedItems") if word in schema)
        return
    named = schema.get("properties", {})
    if step in named:
        yield named[step]
    patterns = [one for pattern, one in schema.get("patternProperties", {}).items() if may_fit(pattern, step)]
    yield from patterns
    if step not in named and not patterns:
        yield from (
            schema[word] for word in ("additionalProperties", "unevaluatedProperties") if word in schema
        )
