"""The masking of values that a schema marks as `secret` (in OpenAPI `writeOnly`)."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from penstock.errors import CheckTooCostly
from penstock.language.schemas.budget import Budget
from penstock.language.schemas.patterns import compiled, search
from penstock.language.schemas.schema_tree import every, follow
from penstock.language.terms.redaction import MASK

_VALUES = ("default", "const")
_LISTS_OF_VALUES = ("enum", "examples")
_IN_PLACE = ("allOf", "anyOf", "oneOf")
_IN_PLACE_ONE = ("if", "then", "else")
_STEPS_OF_PART = 10
"""The steps that a test of one value against one part of a schema costs."""


def is_secret(schema: Any) -> bool:
    return isinstance(schema, dict | Mapping) and (
        schema.get("secret") is True or schema.get("writeOnly") is True
    )


def has_secrets(schema: Mapping[str, Any]) -> bool:
    """Return whether any part of the schema is marked as secret. Most schemas have no mark, and need no masking."""
    return any(is_secret(part) for _, part in every(schema))


def masked(value: Any, root: Mapping[str, Any]) -> Any:
    """Return `value` with MASK in place of each part that `root` marks. A part is secret if any schema that may apply
    marks it. A value that costs more than the budget of one check is secret as a whole."""
    try:
        return _masked(value, [root], root, Budget())
    except (CheckTooCostly, RecursionError):
        return MASK


def masked_schema(root: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema without the defaults, examples and constants of its marked parts."""
    copied: dict[str, Any] = copy.deepcopy(dict(root))
    for _, node in every(copied):
        for _, part in every(node) if is_secret(node) else [((), node)]:
            for word in _VALUES:
                if word in part:
                    cast(dict[str, Any], part)[word] = _masked(part[word], [node], root, Budget())
            for word in _LISTS_OF_VALUES:
                if isinstance(part.get(word), list):
                    cast(dict[str, Any], part)[word] = [
                        _masked(item, [node], root, Budget()) for item in part[word]
                    ]
    return copied


def secret_texts(value: Any, root: Mapping[str, Any]) -> list[str]:
    """Return every text and number (as text) in the parts of `value` that `root` marks. If that costs more than the
    budget of one check, return those of the whole value."""
    try:
        return list(_secret_texts(value, [root], root, Budget()))
    except (CheckTooCostly, RecursionError):
        return list(_leaves(value))


def is_secret_at(place: Sequence[str | int], root: Mapping[str, Any]) -> bool:
    """Return whether the value at this place, or a value that contains it, is marked."""
    schemas: list[Any] = [root]
    budget = Budget()
    for step in place:
        parts = list(applying(schemas, root, budget))
        if any(map(is_secret, parts)):
            return True
        schemas = [schema for part in parts for schema in of_step(part, step, budget)]
    return any(map(is_secret, applying(schemas, root, budget)))


def _masked(value: Any, schemas: Sequence[Any], root: Mapping[str, Any], budget: Budget) -> Any:
    parts = list(applying(schemas, root, budget))
    if any(map(is_secret, parts)):
        return MASK
    if not parts:
        return value
    if isinstance(value, Mapping):
        return {
            name: _masked(item, _of_parts(parts, name, budget), root, budget) for name, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_masked(item, _of_parts(parts, i, budget), root, budget) for i, item in enumerate(value)]
    return value


def _secret_texts(
    value: Any, schemas: Sequence[Any], root: Mapping[str, Any], budget: Budget
) -> Iterator[str]:
    parts = list(applying(schemas, root, budget))
    if any(map(is_secret, parts)):
        yield from _leaves(value)
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _secret_texts(item, _of_parts(parts, name, budget), root, budget)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _secret_texts(item, _of_parts(parts, index, budget), root, budget)


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)


def applying(schemas: Sequence[Any], root: Mapping[str, Any], budget: Budget) -> Iterator[Mapping[str, Any]]:
    """Yield these schemas and all that apply to the same value: the targets of their references, and their branches."""
    pending, node_ids = list(schemas), set[int]()
    while pending:
        node = pending.pop()
        if not isinstance(node, Mapping) or id(node) in node_ids:
            continue
        budget.spend(_STEPS_OF_PART)
        node_ids.add(id(node))
        yield node
        if "$ref" in node:
            pending.append(follow(root, node["$ref"]))
        for word in _IN_PLACE:
            pending.extend(node.get(word, ()))
        pending.extend(node[word] for word in _IN_PLACE_ONE if word in node)
        pending.extend(node.get("dependentSchemas", {}).values())


def _of_parts(parts: Sequence[Mapping[str, Any]], step: str | int, budget: Budget) -> list[Any]:
    return [schema for part in parts for schema in of_step(part, step, budget)]


def of_step(schema: Mapping[str, Any], step: str | int, budget: Budget) -> Iterator[Any]:
    """Yield the schemas that apply to one property, or one item."""
    budget.spend(_STEPS_OF_PART)
    if isinstance(step, int):
        first: Sequence[Any] = schema.get("prefixItems", ())
        yield from first[step : step + 1]
        yield from (schema[word] for word in ("items", "contains", "unevaluatedItems") if word in schema)
        return
    named = schema.get("properties", {})
    if step in named:
        yield named[step]
    patterns = [
        sub
        for pattern, sub in schema.get("patternProperties", {}).items()
        if search(compiled(pattern), step, budget)
    ]
    yield from patterns
    if step not in named and not patterns:
        yield from (
            schema[word] for word in ("additionalProperties", "unevaluatedProperties") if word in schema
        )
