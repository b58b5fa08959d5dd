"""The stored form of JSON: what PostgreSQL returns for a value of the type JSONB.

JSONB sorts the members of an object by the length of their names, and numbers lose their exponent: `1e16` becomes an integer,
and `-0.0` becomes `0.0`. Values that do not come out of the database are converted here, so that code and expressions see the
same value everywhere.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import orjson

_CHANGED = re.compile(rb"\{|\d[eE]|-0")
"""The pattern of JSON that JSONB can change. JSON without a match is returned as it is."""
_CHANGED_NUMBER = re.compile(rb"\d[eE]|-0")
"""The pattern of numbers that JSONB can change. Some texts match it, too."""
_NUMBER = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?[eE][+-]?\d+|-0(?:\.0+)?(?![\d.])', re.DOTALL)
"""The pattern of texts, which are skipped, of numbers with an exponent, and of negative zeros."""
_LONGEST_INTEGER = 20
"""The number of digits of the largest integer of 64 bits. A decoder returns a longer integer as a float."""


def stored_value(encoded: bytes) -> Any:
    """Return the value of a valid JSON document as it is read from a column of the type JSONB."""
    if _CHANGED.search(encoded) is None:
        return orjson.loads(encoded)
    document = orjson.loads(_NUMBER.sub(_stored_number, encoded))
    pending = [document]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            if len(node) > 1:
                members = sorted(node.items(), key=_place)
                node.clear()
                node.update(members)
            pending.extend(node.values())
        elif isinstance(node, list):
            pending.extend(node)
    return document


def as_stored(value: Any) -> Any:
    """Return a JSON value as it is read from a column of the type JSONB. Raises orjson.JSONEncodeError for other values."""
    return stored_value(orjson.dumps(value))


def stored_form(canonical: bytes) -> bytes:
    """Return a JSON document with sorted members in a form that is equal for documents that are stored alike, as `1e16` and
    `10000000000000000` are."""
    if _CHANGED_NUMBER.search(canonical) is None:
        return canonical
    return orjson.dumps(stored_value(canonical), option=orjson.OPT_SORT_KEYS)


def _stored_number(match: re.Match[bytes]) -> bytes:
    token = match[0]
    if token.startswith(b'"'):
        return token
    number = Decimal(token.decode())
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)  # the token is a finite number
    if number.is_zero():
        return b"0" if exponent >= 0 else b"0.0"
    if exponent < 0 or number.adjusted() >= _LONGEST_INTEGER:
        return token  # a decoder reads this token as the float that it would read from the stored form
    return f"{number:f}".encode()


def _place(member: tuple[str, Any]) -> tuple[int, bytes]:
    name = member[0].encode()
    return len(name), name
