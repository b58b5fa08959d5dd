"""The check that a value can be stored as a payload or as parameters: as JSON that PostgreSQL returns unchanged."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import orjson

from penstock.bounds import DEPTH_CAP, PAYLOAD_CAP
from penstock.errors import InvalidInput
from penstock.language.terms.options import dotted
from penstock.language.terms.sources import Location
from penstock.run import python_values

_HINT = "Send JSON: objects with text keys, arrays, text, finite numbers, booleans, null."


def check_value(value: object, cap: int = PAYLOAD_CAP, *, what: str = "the value") -> bytes:
    """Return `value` as canonical JSON: keys sorted, no spaces. Dataclasses, pydantic models, datetimes, UUIDs and
    enums are converted. Raises InvalidInput, naming the place, for a value that is not JSON, has more than `cap` bytes,
    or nests deeper than DEPTH_CAP. InvalidInput is also raised for NUL, NaN, Infinity, and an integer of more than 64
    bits."""
    try:
        encoded = python_values.to_json(value, orjson.OPT_SORT_KEYS)
    except TypeError as error:
        raise _unfit(value, what, str(error)) from None
    if len(encoded) > cap:
        raise InvalidInput(
            f"{what} has {len(encoded):,} bytes of JSON; at most {cap:,} are taken",
            hint="Put large data in an object store and send a link, or raise PENSTOCK_PAYLOAD_CAP.",
        )
    # orjson writes NaN and Infinity as null, so only a value with a null in its JSON can contain them.
    if b"null" in encoded and _may_hide_nan(value) and (place := _find(value, _not_finite)) is not None:
        raise InvalidInput(f"{_at(what, place)} is NaN or Infinity, which JSON cannot represent", hint=_HINT)
    # An escaped backslash before u0000 is harmless text, so each match is checked again.
    if b"\\u0000" in encoded and (place := _find(orjson.loads(encoded), _has_nul)) is not None:
        raise InvalidInput(
            f"{_at(what, place)} holds a NUL character, which PostgreSQL refuses",
            hint="Remove it, or send the text as base64.",
        )
    # The count of all opening brackets, those in texts included, is a quick bound on the depth. It accepts almost all
    # values without a walk.
    if encoded.count(b"[") + encoded.count(b"{") > DEPTH_CAP and _is_too_deep(orjson.loads(encoded)):
        raise InvalidInput(f"{what} nests deeper than {DEPTH_CAP} levels", hint="Flatten it.")
    return encoded


def _unfit(value: object, label: str, reason: str) -> InvalidInput:
    if "ecursion" in reason:
        return InvalidInput(f"{label} nests too deep, or contains itself", hint="Flatten it.")
    place = _find(value, _not_json)
    return InvalidInput(f"{_at(label, place or ())} is not JSON: {reason}", hint=_HINT)


def _at(label: str, place: Location) -> str:
    return f"{label} at {dotted(place)}" if place else label


_strictly = json.JSONEncoder(allow_nan=False, check_circular=False).encode


def _may_hide_nan(value: object) -> bool:
    """Return True if only a walk can find a NaN. Python's own encoder refuses NaN, and is ten times as fast as a
    walk."""
    try:
        _strictly(value)
    except (TypeError, ValueError):
        return True
    return False


def _not_finite(leaf: object) -> bool:
    return isinstance(leaf, float) and not math.isfinite(leaf)


def _has_nul(leaf: object) -> bool:
    return isinstance(leaf, str) and "\0" in leaf


def _not_json(leaf: object) -> bool:
    try:
        python_values.to_json(leaf)
    except TypeError:
        return True
    return False


def _find(value: object, test: Callable[[object], bool]) -> Location | None:
    """Return the location of the first scalar (or key) that passes the test."""
    return next((place for place, leaf in _leaves(value) if test(leaf)), None)


def _leaves(value: object) -> Iterator[tuple[Location, object]]:
    """Yield every scalar inside `value` with its location, keys included, without recursion."""
    pending: list[tuple[Location, object]] = [((), value)]
    while pending:
        place, leaf = pending.pop()
        try:
            node = python_values.opened(leaf)
        except (TypeError, ValueError):  # a model with a field that is not JSON
            node = object()
        if isinstance(node, Mapping):
            for key, inner in node.items():
                yield place, key if isinstance(key, str) else object()  # any other key is not JSON
                pending.append(((*place, str(key)), inner))
        elif isinstance(node, list | tuple):
            pending.extend(((*place, index), inner) for index, inner in enumerate(node))
        else:
            yield place, node


def _is_too_deep(value: object) -> bool:
    """Return true if objects and arrays nest deeper than DEPTH_CAP."""
    level = [value]
    for _ in range(DEPTH_CAP):
        level = [inner for node in level if isinstance(node, dict | list) for inner in _items(node)]
    return any(isinstance(node, dict | list) for node in level)


def _items(node: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return node.values() if isinstance(node, dict) else node
