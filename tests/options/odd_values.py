"""Values for any option: bounds of the column types, neighbours of these bounds, and values of every JSON type."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from penstock.errors import PenstockError

SMALLINT, INTEGER, BIGINT = 2**15, 2**31, 2**63
NUMBERS = (
    *(0, 1, -1, 0.5, 1.0, 1e300, 10**30),
    *(bound + off for bound in (SMALLINT, INTEGER, BIGINT) for off in (-1, 0)),
    *(-bound - off for bound in (SMALLINT, INTEGER, BIGINT) for off in (0, 1)),
)
TEXTS = (
    "",
    "no",
    "3",
    "a\0b",
    "\ud800",
    "x" * 3000,
    "{{",
    "{{ 1 / 0 }}",
    "9" * 400,
    "1e999s",
)
OTHERS: tuple[Any, ...] = (
    None,
    True,
    False,
    [],
    [1],
    {},
    {"a": 1},
    {"no_such": True},
    {"a": {"b": [1, "x"]}},
)
ODD: tuple[Any, ...] = (*NUMBERS, *TEXTS, *OTHERS)


def bounds(schema: Mapping[str, Any]) -> Iterator[Any]:
    """Yield each bound that a JSON Schema names, its neighbours, and the members of its enumerations."""
    for branch in (schema, *schema.get("anyOf", ()), *schema.get("oneOf", ())):
        for word in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
            if word in branch:
                yield from (branch[word], branch[word] - 1, branch[word] + 1)
        yield from branch.get("enum", ())
        for word in ("minLength", "maxLength"):
            if word in branch:
                yield from ("x" * max(branch[word] + off, 0) for off in (-1, 0, 1))


def distinct(values: Iterator[Any] | tuple[Any, ...]) -> list[Any]:
    """Return the values without repetitions; `1`, `1.0` and `true` are three values."""
    return list({json.dumps(value): value for value in values}.values())


def fault(error: BaseException, where: str) -> str | None:
    """Return what is wrong with an error that a door raised: None for a typed one with a hint."""
    if not isinstance(error, PenstockError):
        return f"{where}: {type(error).__name__}: {str(error)[:300]}"
    if not error.hint:
        return f"{where}: {type(error).__name__} without a hint: {error.message[:200]}"
    return None
