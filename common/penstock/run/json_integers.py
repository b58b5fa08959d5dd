"""The integers of JSON documents from outside. A decoder turns an integer of more than 64 bits into a float, which is
another number, so such a document is refused."""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import suppress
from typing import Any

import orjson

from penstock.errors import InvalidInput

_LONG = re.compile(rb"\d{19}")
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?', re.DOTALL)
"""The pattern of texts, which are skipped, and of numbers."""
_MOST_DIGITS = 20

TOO_LARGE = "Integer exceeds 64-bit range"
"""The reason, in the words of the encoder that refuses such an integer."""
HINT = "Send it as text."


def parsed(encoded: bytes, label: str = "the body") -> Any:
    """Return the value of a JSON document. Raises orjson.JSONDecodeError, and InvalidInput for an integer of more than
    64 bits. An error calls the document `label`."""
    document = orjson.loads(encoded)
    if has_too_large_integer(encoded):
        raise InvalidInput(f"{label} is not JSON: {TOO_LARGE}", hint=HINT)
    return document


def parsed_by_hand(text: str, label: str) -> Any:
    """Return the value of a JSON document that a person wrote. Raises orjson.JSONDecodeError, and InvalidInput for an
    integer of more than 64 bits. InvalidInput is also raised for an object with a name twice, of which one value would
    be lost."""
    document = parsed(text.encode("utf-8", "surrogatepass"), label)

    def refuse_doubled(pairs: list[tuple[str, Any]]) -> None:
        if len(dict(pairs)) < len(pairs):
            counts = Counter(name for name, _ in pairs)
            raise InvalidInput(
                f"{label} has the name {counts.most_common(1)[0][0]!r} twice", hint="Remove one of them."
            )

    if "{" in text:
        # A document that nests too deeply is refused by the check of its depth.
        with suppress(RecursionError):
            json.loads(text, object_pairs_hook=refuse_doubled)
    return document


def has_too_large_integer(encoded: bytes) -> bool:
    """Return whether a valid JSON document has an integer of more than 64 bits, signed or unsigned."""
    if _LONG.search(encoded) is None:
        return False
    return any(_is_too_large(match[0]) for match in _TOKEN.finditer(encoded))


def _is_too_large(token: bytes) -> bool:
    digits = token.removeprefix(b"-")
    if not digits.isdigit():
        return False
    return len(digits) > _MOST_DIGITS or not -(2**63) <= int(token) < 2**64
