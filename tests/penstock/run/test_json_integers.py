"""Integers of documents from outside: none becomes another number."""

from __future__ import annotations

import pytest

from penstock.errors import InvalidInput, ResultNotStorable
from penstock.run import result_encoding
from penstock.run.json_integers import parsed

LARGE = (b"18446744073709551616", b"-9223372036854775809", b"1" + b"0" * 300)


@pytest.mark.parametrize("number", LARGE, ids=("unsigned", "signed", "hundreds"))
@pytest.mark.parametrize("document", [b"%s", b" [1, %s ]", b'{"a\\"": {"b": [%s]}}'])
def test_integer_beyond_64_bits_is_refused(number: bytes, document: bytes) -> None:
    with pytest.raises(InvalidInput, match="Integer exceeds 64-bit range"):
        parsed(document % number)
    with pytest.raises(ResultNotStorable, match="Integer exceeds 64-bit range"):
        result_encoding.check(document % number)


@pytest.mark.parametrize(
    ("document", "value"),
    [
        (b"18446744073709551615", 2**64 - 1),
        (b"[-9223372036854775808]", [-(2**63)]),
        (b'"123456789012345678901234567890"', "123456789012345678901234567890"),
        (b'["\\"123456789012345678901234567890", 1]', ['"123456789012345678901234567890', 1]),
        (b"0.1234567890123456789012345", 0.1234567890123456789012345),
        (b"123456789012345678901234567890.0", 1.2345678901234568e29),
        (b"1e20", 1e20),
    ],
)
def test_other_numbers_and_texts_are_taken(document: bytes, value: object) -> None:
    assert parsed(document) == value
    assert result_encoding.check(document) == document
