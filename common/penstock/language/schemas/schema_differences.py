"""The differences between two schemas of the same values, as sentences for the author of one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from penstock.language.schemas.equality import key
from penstock.language.schemas.schema_tree import LISTS, NAMED, ONE, normalise
from penstock.language.terms.options import dotted
from penstock.language.terms.sources import Location

_ANNOTATIONS = frozenset(
    ("title", "description", "examples", "deprecated", "$comment", "secret", "readOnly", "writeOnly")
)
"""The keywords that change nothing about which values are valid."""
_SETS = ("type", "enum", "required")
"""The keywords with lists that have no order."""
LONGEST_VALUE = 80
"""The length at which a value in a sentence is cut off."""


def schema_differences(defined: Mapping[str, Any], offered: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each place where the schema of a worker (`offered`) differs from that of the definition. Both are
    in normal form. Descriptions and marks of secrets are not compared."""
    # A branch of `anyOf` without its title may be a bare type, which the normal form writes in another way.
    yield from _differences((), *(_bare(normalise(_bare(schema))) for schema in (defined, offered)))


def _differences(place: Location, defined: Any, offered: Any) -> Iterator[str]:
    if not isinstance(defined, Mapping) or not isinstance(offered, Mapping):
        if key(defined) != key(offered):
            yield _told(place, defined, offered)
        return
    for word in sorted({*defined, *offered}):
        if word == "properties":
            yield from _properties(place, defined.get(word) or {}, offered.get(word) or {})
        elif word == "required":
            yield from _required(place, set(defined.get(word) or ()), set(offered.get(word) or ()))
        elif word in defined and word in offered:
            if word in ONE:
                yield from _differences((*place, word), defined[word], offered[word])
            elif key(defined[word]) != key(offered[word]):
                yield _told((*place, word), defined[word], offered[word])
        else:
            side, value = ("definition", defined[word]) if word in defined else ("worker", offered[word])
            yield f"{dotted((*place, word))}: only the {side} has it, as {_short(value)}"


def _properties(place: Location, defined: Mapping[str, Any], offered: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted({*defined, *offered}):
        if name in defined and name in offered:
            yield from _differences((*place, name), defined[name], offered[name])
        else:
            yield f"{dotted((*place, name))}: only the {'definition' if name in defined else 'worker'} has it"


def _required(place: Location, defined: set[str], offered: set[str]) -> Iterator[str]:
    for name in sorted(defined ^ offered):
        yield f"{dotted((*place, name))}: only the {'definition' if name in defined else 'worker'} requires it"


def _told(place: Location, defined: Any, offered: Any) -> str:
    at = f"{dotted(place)}: " if place else ""
    return f"{at}the definition has {_short(defined)}, the worker {_short(offered)}"


def _short(value: Any) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


def _bare(schema: Any) -> Any:
    """Return a schema without what is not compared, and with lists without an order sorted."""
    if not isinstance(schema, Mapping):
        return schema
    bare: dict[str, Any] = {}
    for word, value in schema.items():
        if word in _ANNOTATIONS or word.startswith("x-"):
            continue
        if word in ONE:
            value = _bare(value)
        elif word in LISTS and isinstance(value, list):
            value = [_bare(branch) for branch in value]
        elif word in NAMED and isinstance(value, Mapping):
            value = {name: _bare(part) for name, part in value.items()}
        elif word in _SETS and isinstance(value, list):
            value = sorted(value, key=orjson.dumps)
        bare[word] = value
    return bare
