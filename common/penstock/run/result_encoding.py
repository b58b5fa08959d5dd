"""The values that can be stored as a result: JSON that PostgreSQL stores and returns unchanged (EDGES 6)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

import orjson

from penstock.bounds import PAYLOAD_CAP
from penstock.errors import ResultNotStorable
from penstock.run import json_integers, python_values

RESULT_LIMIT = PAYLOAD_CAP
"""The maximum size of a result where no setting says another one, in bytes of JSON."""

RESULT = "the result"
NULL = b"null"
_EXTREME_NUMBER = re.compile(rb"[eE]-\d{3}|\d{400}")
"""The pattern of numbers that PostgreSQL's numeric may not hold (1e-20000). JSON with a match is rewritten with
doubles."""
_HINT = "Return JSON: dicts with string keys, lists, strings, finite numbers, booleans, None."


def encode(value: object, limit: int = RESULT_LIMIT, label: str = RESULT) -> bytes:
    """Return `value` as JSON. Dataclasses, pydantic models, datetimes, UUIDs and enums are converted. An error calls the
    value `label`.

    Raises ResultNotStorable if it is not JSON, is larger than `limit` bytes, or holds NUL, NaN or Infinity.
    """
    if value is None:
        return NULL
    try:
        encoded = python_values.to_json(value)
    except TypeError as error:
        raise ResultNotStorable(f"{label} is not JSON: {error}", hint=_HINT) from None
    # orjson writes NaN and Infinity as null. Only a result with a null can have lost a number that way.
    if NULL in encoded and any(isinstance(x, float) and not math.isfinite(x) for x in _leaves(value)):
        raise ResultNotStorable(f"{label} holds NaN or Infinity, which JSON cannot represent", hint=_HINT)
    return _within(encoded, limit, label)


def check(encoded: bytes, limit: int = RESULT_LIMIT) -> bytes:
    """Return JSON from outside (a command, an HTTP response) in a storable form. Raises ResultNotStorable if it is not
    JSON or larger than `limit`."""
    encoded = encoded.strip()
    try:
        decoded = orjson.loads(encoded)
    except orjson.JSONDecodeError as error:
        raise ResultNotStorable(f"the result is not JSON: {error}", hint=_HINT) from None
    refuse_large_integers(encoded, "the result")
    if _EXTREME_NUMBER.search(encoded):
        encoded = orjson.dumps(decoded)
    return _within(encoded, limit)


def refuse_large_integers(encoded: bytes, label: str) -> None:
    """Raise ResultNotStorable for JSON with an integer of more than 64 bits, which would be read as another number."""
    if json_integers.has_too_large_integer(encoded):
        raise ResultNotStorable(f"{label} is not JSON: {json_integers.TOO_LARGE}", hint=json_integers.HINT)


def _within(encoded: bytes, limit: int, label: str = RESULT) -> bytes:
    if len(encoded) > limit:
        raise ResultNotStorable(
            f"{label} has {len(encoded):,} bytes; at most {limit:,} are stored",
            hint="Set PENSTOCK_RESULT_STORE to store it there, or raise PENSTOCK_PAYLOAD_CAP."
            if label is RESULT
            else "Pass on a reference, such as an id or the address of a file; or raise PENSTOCK_PAYLOAD_CAP.",
        )
    # An escaped backslash before u0000 is harmless text, so a match is checked again in the decoded value.
    nul = b"\\u0000" in encoded and orjson.loads(encoded)
    if nul and any(isinstance(x, str) and "\0" in x for x in _leaves(nul)):
        raise ResultNotStorable(
            f"{label} holds a NUL character, which PostgreSQL refuses", hint="Remove it, or use base64."
        )
    return encoded


def _leaves(value: object) -> Iterator[object]:
    """Yield every scalar inside `value`, keys included, without recursion."""
    pending = [value]
    while pending:
        node = python_values.opened(pending.pop())
        if isinstance(node, Mapping):
            pending.extend(node)
            pending.extend(node.values())
        elif isinstance(node, list | tuple):
            pending.extend(node)
        else:
            yield node
