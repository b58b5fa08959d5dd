"""The traversal of schemas, and the normal form in which equivalent schemas are equal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from penstock.language.terms.sources import Location

ONE = (
    "additionalProperties", "items", "contains", "not", "if", "then", "else", "propertyNames",
    "unevaluatedItems", "unevaluatedProperties", "contentSchema",
)  # fmt: skip
"""The keywords with a schema as their value."""
LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
"""The keywords with a list of schemas as their value."""
NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
"""The keywords with a mapping from names to schemas as their value."""
_HOLDERS = {word: words for words in (ONE, LISTS, NAMED) for word in words}


def inner(schema: Mapping[str, Any]) -> Iterator[tuple[Location, Any]]:
    """Yield the schemas directly inside a schema, each with its location."""
    for word, value in schema.items():
        kind = _HOLDERS.get(word)
        if kind is None:
            continue
        if kind is ONE:
            yield (word,), value
        elif kind is LISTS and isinstance(value, list):
            for index, branch in enumerate(value):
                yield (word, index), branch
        elif kind is NAMED and isinstance(value, dict | Mapping):
            for name, child in value.items():
                yield (word, name), child


def every(schema: Any) -> Iterator[tuple[Location, Mapping[str, Any]]]:
    """Yield the schema itself and all schemas inside it, at any depth. `true` and `false` are left out."""
    pending: list[tuple[Location, Any]] = [((), schema)]
    while pending:
        place, node = pending.pop()
        if isinstance(node, dict | Mapping):
            yield place, node
            pending.extend(((*place, *step), child) for step, child in inner(node))


def follow(root: Mapping[str, Any], reference: Any) -> Any:
    """Return the target of a local reference (`#`, `#/$defs/order`), or None."""
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        return None
    node: Any = root
    for step in reference.split("/")[1:]:
        step = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(node, Mapping) and step in node:
            node = node[step]
        elif isinstance(node, list) and step.isdigit() and int(step) < len(node):
            node = node[int(step)]
        else:
            return None
    return node if isinstance(node, Mapping | bool) else None


def normalise(schema: Any, *, titles: bool = True) -> Any:
    """Return the schema without the parts that do not change its meaning, so that equivalent schemas have equal
    digests. `required` is sorted. `anyOf` of bare types becomes a list of types. `additionalProperties: true` and
    `items: {}` are removed. With `titles=False` titles are removed too, since pydantic generates them."""
    if not isinstance(schema, Mapping):
        return schema
    out: dict[str, Any] = {}
    for word, value in schema.items():
        if word in ONE:
            value = normalise(value, titles=titles)
        elif word in LISTS and isinstance(value, list):
            value = [normalise(item, titles=titles) for item in value]
        elif word in NAMED and isinstance(value, Mapping):
            value = {name: normalise(item, titles=titles) for name, item in value.items()}
        out[word] = value
    if not titles and isinstance(out.get("title"), str):
        del out["title"]
    if isinstance(out.get("required"), list):
        out["required"] = sorted(set(out["required"]))
    for word in ("required", "properties"):
        if word in out and not out[word]:
            del out[word]
    if out.get("additionalProperties") in (True, {}):
        del out["additionalProperties"]
    if out.get("items") in (True, {}):
        del out["items"]
    if "type" not in out and (types := _bare_types(out.get("anyOf"))):
        del out["anyOf"]
        out["type"] = types
    return out


def _bare_types(branches: Any) -> list[str] | None:
    """Return the types, if each branch has nothing but a type, as in `str | None`; otherwise None."""
    if not isinstance(branches, list) or not all(
        isinstance(b, dict) and list(b) == ["type"] for b in branches
    ):
        return None
    types = [branch["type"] for branch in branches]
    return types if all(isinstance(name, str) for name in types) and len(set(types)) == len(types) else None
