"""Schemas and values that are made to cost as much as possible, as sequences of choices that a search can change bit by bit.

python -m tests.penstock.language.schemas.hostile_schemas 300 7     # searches for 300 seconds from seed 7, and prints the worst
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import orjson
import regex

from penstock.bounds import PAYLOAD_CAP, SCHEMA_CAP
from penstock.errors import DefinitionError, PenstockError
from penstock.language.schemas import Schema, check_schema, check_value, schema
from penstock.language.schemas.patterns import compiled
from penstock.language.terms.options import Wrong
from tests.penstock.language.schemas.hostile_values import NUMBERS, Choices, Draw, Values, size

PATTERNS = (
    "^(a|aa)+$", "(x+x+)+y", "^[a-z]+$", "1$",
    "(?i)[^\\W\\d]{1,50}$", "(a?){25}a{25}", "\\bk\\d+", "(.*)*b", "\\p{L}{3}(?=x)", "(?:a{1,90}){1,90}",
)  # fmt: skip
FORMATS = ("date-time", "date", "time", "uuid", "ipv4", "ipv6", "email")


def case(draw: Draw, *, payload: int = PAYLOAD_CAP, schema: int = SCHEMA_CAP - 4_000) -> tuple[Any, Any]:
    """Make a schema and a value, each within its bytes."""
    names = [f"k{n}" for n in range(draw.count(12))]
    document = _Schemas(draw, names, schema).document()
    value = Values(draw, names).value(0, payload)
    return document, value


class _Schemas:
    def __init__(self, draw: Draw, names: Sequence[str], room: int) -> None:
        self._draw, self._names = draw, names
        self._left = room
        self._defs = draw.count(30)

    def document(self) -> dict[str, Any]:
        share = self._left // 3
        defs: dict[str, Any] = {}
        for n in range(self._defs):
            defs[f"d{n}"] = self._part(1, share // self._defs, n)
        whole = self._part(0, self._left - size(defs), self._defs)
        return {"$defs": defs, **whole}

    def _part(self, depth: int, room: int, place: int) -> Any:
        """Make a part of at most about `room` bytes. Where a reference applies to the same value, it mostly leads to a definition
        of a higher number, so that few schemas are refused as circular."""
        part: dict[str, Any] = {}
        for _ in range(self._draw.count(3)):
            left = room - size(part)
            if left < 60:
                break
            word = self._draw.of(_SCALARS if depth > 5 else _WORDS)
            part[word] = getattr(self, f"_{word.strip('$')}")(depth + 1, left - 40, place)
        return part

    def _copies(self, depth: int, room: int, place: int) -> list[Any]:
        first = self._part(depth, min(room, self._draw.count(max(room, 2))), place)
        number = self._draw.count(max(room // (size(first) + 1), 1))
        if self._draw.share() < 0.5:
            return [first] * number
        listed, left = [first], room - size(first)
        while len(listed) < number and left > 60:
            listed.append(self._part(depth, left // max(number - len(listed), 1) + 60, place))
            left -= size(listed[-1]) + 1
        return listed if left >= 0 else [first]

    def _named(self, depth: int, room: int, place: int, name: Callable[[int], str]) -> dict[str, Any]:
        parts = self._copies(depth, max(room - room // 4, 60), place)
        number = min(len(parts), max(room // (size(parts[0]) + 12), 1))
        return {name(n): part for n, part in enumerate(parts[:number])}

    def _ref(self, depth: int, room: int, place: int) -> str:
        first = 0 if depth > 1 and self._draw.share() < 0.3 else min(place + 1, self._defs)
        choices = range(first, self._defs)
        return (
            f"#/$defs/d{self._draw.of(choices)}"
            if choices
            else "#/$defs/d0"
            if place >= self._defs
            else "#/$defs/none"
        )

    def _type(self, *_: int) -> Any:
        kinds = ["object", "array", "string", "integer", "number", "boolean", "null"]
        return kinds[: self._draw.count(7)] if self._draw.share() < 0.5 else self._draw.of(kinds)

    def _enum(self, depth: int, room: int, place: int) -> list[Any]:
        item = self._draw.of([1, "a", 1.5, [1], {"a": 1}, [[1, {"a": [2]}]], "x" * 100, None])
        number = self._draw.count(max(room // (size(item) + 8), 1))
        return [n if item == 1 else [item, n] if isinstance(item, list) else item for n in range(number)]

    def _const(self, depth: int, room: int, place: int) -> Any:
        return Values(self._draw, self._names).value(3, room)

    def _pattern(self, *_: int) -> str:
        return str(self._draw.of(PATTERNS))

    def _format(self, *_: int) -> str:
        return str(self._draw.of(FORMATS))

    def _multipleOf(self, *_: int) -> Any:
        return self._draw.of([1, 0.1, 0.01, 7, 1e-300, 1e300])

    def _number(self, *_: int) -> Any:
        return self._draw.of(NUMBERS)

    _minimum = _maximum = _exclusiveMinimum = _exclusiveMaximum = _number

    def _length(self, *_: int) -> int:
        return int(self._draw.of([0, 1, 2, 100, 10**6]))

    _minLength = _maxLength = _minItems = _maxItems = _minProperties = _maxProperties = _length
    _minContains = _maxContains = _length

    def _uniqueItems(self, *_: int) -> bool:
        return True

    def _required(self, depth: int, room: int, place: int) -> list[str]:
        return self._many_names(room)

    def _many_names(self, room: int) -> list[str]:
        return [f"k{n}" for n in range(self._draw.count(max(room // 9, 1)))]

    def _dependentRequired(self, depth: int, room: int, place: int) -> dict[str, list[str]]:
        names = self._many_names(room // 3)
        several = self._many_names(max(room // (3 * len(names)), 1))
        return dict.fromkeys(names, several) if len(names) * 9 * len(several) < room else {"k0": ["k1"]}

    def _properties(self, depth: int, room: int, place: int) -> dict[str, Any]:
        return self._named(depth, room, self._defs, lambda n: f"k{n}")

    def _patternProperties(self, depth: int, room: int, place: int) -> dict[str, Any]:
        parts = self._named(depth, min(room, 10_000), self._defs, lambda n: f"{self._draw.of(PATTERNS)}|{n}$")
        return dict(list(parts.items())[: 16_000 // 90])

    def _dependentSchemas(self, depth: int, room: int, place: int) -> dict[str, Any]:
        return self._named(depth, room, place, lambda n: f"k{n}")

    def _inside(self, depth: int, room: int, place: int) -> Any:
        return self._part(depth, room, -1)

    _items = _contains = _additionalProperties = _propertyNames = _unevaluatedItems = _inside
    _unevaluatedProperties = _inside

    def _same(self, depth: int, room: int, place: int) -> Any:
        return self._part(depth, room // 2, place)

    _not = _if = _then = _else = _same
    _allOf = _anyOf = _oneOf = _prefixItems = _copies


_SCALARS = (
    "type", "enum", "const", "pattern", "format", "multipleOf", "minimum", "maximum", "minLength", "maxItems", "uniqueItems",
    "required", "dependentRequired", "$ref", "$ref",
)  # fmt: skip
_WORDS = (
    *_SCALARS, "properties", "patternProperties", "dependentSchemas", "items", "contains", "additionalProperties",
    "propertyNames", "unevaluatedItems", "unevaluatedProperties", "not", "if", "then",
    "else", "allOf", "anyOf", "oneOf", "prefixItems",
    "items", "items", "allOf", "anyOf", "oneOf", "properties", "maxContains", "minContains",
)  # fmt: skip


def is_legal(document: Any, value: Any) -> bool:
    """Return whether a declaration takes the schema, and both are within their bounds of bytes and depth."""
    try:
        check_schema(document)
        check_value(value)
    except (Wrong, PenstockError):
        return False
    return True


def cost(document: Any, value: Any) -> float:
    """Return the processor time of one check as a service meets it at worst: the schema is not compiled yet."""
    encoded = orjson.dumps(document)
    schema._cache.__init__()  # type: ignore[misc]
    compiled.cache_clear()
    regex.purge()
    fresh = orjson.loads(encoded)
    value = orjson.loads(orjson.dumps(value))
    began = time.process_time()
    try:
        Schema(fresh).check(value, cap=PAYLOAD_CAP, decoded=True)
    except PenstockError as error:
        len(str(error))
    return time.process_time() - began


def searched(seconds: float, seed: int) -> tuple[float, Any, Any]:
    """Return the worst case of a search that keeps what costs more, from many beginnings."""
    more = random.Random(seed)
    best: list[tuple[float, Choices, Any, Any]] = []
    ends = time.monotonic() + seconds
    tries = 0
    while time.monotonic() < ends:
        tries += 1
        if len(best) < 12 or more.random() < 0.3:
            choices: Choices = []
        else:
            choices = _changed(more.choice(best)[1], more)
        draw = Draw(choices, more)
        try:
            document, value = case(draw)
            took = cost(document, value)
        except (RecursionError, DefinitionError):  # no declaration would take it
            continue
        if (len(best) == 12 and took <= best[-1][0]) or not is_legal(document, value):
            continue
        if took > 0.05 and (len(best) < 12 or took > best[-1][0]):
            took = min(took, cost(document, value), cost(document, value))  # not the disturbances of others
        if len(best) < 12 or took > best[-1][0]:
            if not best or took > best[0][0]:
                print(f"{tries}: {took:.3f} s {str(document)[:150]} | {str(value)[:60]}", flush=True)
            best.append((took, draw.used(), document, value))
            best.sort(key=lambda item: -item[0])
            del best[12:]
    print(f"{tries} cases; the worst: {', '.join(f'{item[0]:.3f}' for item in best)}")
    return best[0][0], best[0][2], best[0][3]


def _changed(choices: Sequence[float], more: random.Random) -> Choices:
    changed = list(choices)
    for _ in range(more.choice([1, 1, 2, 4])):
        place = more.randrange(len(changed))
        match more.randrange(4):
            case 0:
                changed[place] = more.random()
            case 1:
                changed[place] = min(max(changed[place] + more.gauss(0, 0.05), 0.0), 0.999)
            case 2:
                del changed[place]
                if not changed:
                    return []
            case 3:
                changed[place:] = changed[place : place + more.randrange(20)]
                if not changed:
                    return []
    return changed


if __name__ == "__main__":
    _, worst_schema, worst_value = searched(float(sys.argv[1]), int(sys.argv[2]))
    Path(tempfile.gettempdir(), f"hostile-{sys.argv[2]}.json").write_bytes(
        orjson.dumps([worst_schema, worst_value])
    )
